import { randomUUID } from "node:crypto";
import { createVerifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { type SmppOptions, smppSender } from "phoneproof/senders/smpp";
import { describe, expect, onTestFinished, test } from "vitest";
import { account, commands, delivery, listLogger, startCentre, switchedStore, tlv } from "./smpp-receipts-kit.js";

const secret = "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6";

async function centreOfTest() {
  const centre = await startCentre();
  onTestFinished(() => centre.stop());
  return centre;
}

/** A verifier whose sender is bound to a message centre. */
async function bound(options: Partial<SmppOptions> = {}, more: Partial<VerifierOptions> = {}) {
  const centre = await centreOfTest();
  const log = listLogger();
  const { store, control } = switchedStore(memoryStore({ name: randomUUID() }));
  const sender = smppSender({
    ...account(centre),
    logger: log,
    onReceipt: (receipt) => verifier.settleReceipts([receipt]),
    ...options,
  });
  const verifier = createVerifier({ store, sender, secret, countries: ["FR"], logger: log, callbacks: { worker: false }, statistics: false, ...more });
  onTestFinished(() => {
    control.down = false;
    return verifier.close();
  });
  await sender.connect();
  const link = centre.links[0];
  if (!link) throw new Error("there is no connection");
  return { centre, link, log, control, sender, verifier };
}

describe("receipts that cannot be settled", () => {
  test("a receipt with an id that no message can have is not asked for again and again", async () => {
    const { link } = await bound();
    const id = "x".repeat(300);
    const body = delivery("", { tlvs: [tlv(0x1e, `${id}\0`), tlv(0x427, Uint8Array.of(2))] });
    expect((await link.answer(link.send(commands.deliver_sm, body))).status).toBe(0);
  });
});
