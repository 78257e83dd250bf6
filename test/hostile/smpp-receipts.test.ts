import { randomUUID } from "node:crypto";
import { createVerifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { type SmppOptions, smppSender } from "phoneproof/senders/smpp";
import { describe, expect, onTestFinished, test } from "vitest";
import { account, commands, delivery, listLogger, receiptText, startCentre, switchedStore, tlv } from "./smpp-receipts-kit.js";

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

describe("what the log holds", () => {
  test("an outage of the store does not log a stack for each receipt", async () => {
    const { link, log, control } = await bound();
    control.down = true;
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => link.answer(link.send(commands.deliver_sm, delivery(receiptText(`m${index}`))))),
    );
    // None is acknowledged, so none is lost.
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([0x64]));
    const stacks = log.lines.filter((line) => /\n\s+at /.test(String(line.fields["err"])));
    expect(stacks.length, [...new Set(stacks.map((line) => line.message))].join("; ")).toBeLessThan(10);
  });

  test("receipts in a form that the sender cannot read do not flood the log", async () => {
    const { link, log } = await bound();
    await Promise.all(Array.from({ length: 60 }, () => link.answer(link.send(commands.deliver_sm, delivery("msgid=1 state=ok")))));
    expect(log.lines.filter((line) => line.level === "warn").length).toBeLessThan(10);
  });
});

describe("receipts that cannot be settled", () => {
  test("a receipt with an id that no message can have is not asked for again and again", async () => {
    const { link } = await bound();
    const id = "x".repeat(300);
    const body = delivery("", { tlvs: [tlv(0x1e, `${id}\0`), tlv(0x427, Uint8Array.of(2))] });
    expect((await link.answer(link.send(commands.deliver_sm, body))).status).toBe(0);
  });
});
