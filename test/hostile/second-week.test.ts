import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { router } from "phoneproof/router";
import { whatsappReceipts, whatsappSender } from "phoneproof/senders/whatsapp";
import { fixedClock } from "phoneproof/testing";
import { expect, onTestFinished, test } from "vitest";
import { password, startPeer, systemId } from "../support/smpp.js";
import { errorCode, setUp } from "../support/verifier.js";
import { built, command } from "./second-week-kit.js";

// The second week of a self-hosted service: a lost secret, and a restart with receipts on the way.

test("a retry that fails because the secret was lost is logged with the reason", async () => {
  const before = setUp();
  onTestFinished(() => before.verifier.close());
  const { authentication_uuid } = await before.create();
  await before.clock.advance(31_000);

  const customers = [{ customer_uuid: before.customer, keys: [before.apiKey] }];
  const after = setUp({ store: before.store, clock: before.clock, customers, secret: "Zb4VnW8xK2mQ7tRj5LcH9sDfY3gPaE6u" });
  onTestFinished(() => after.verifier.close());
  expect(await errorCode(after.verifier.retry({ customer_uuid: before.customer, authentication_uuid }))).toBe("unavailable");

  // The response must not say it, so the log is the only place where an operator can learn that the store is fine.
  expect(JSON.stringify(after.log.lines)).toContain("secret");
});

test("a fallback that cannot be sent because the secret was lost leaves its reason in the log or in explain", async () => {
  const clock = fixedClock();
  const store = memoryStore();
  const lines: unknown[] = [];
  const log = (...line: unknown[]) => void lines.push(line);
  const whatsapp = whatsappSender({
    token: "t".repeat(40),
    phoneNumberId: "123456789",
    template: "verification_code",
    languages: "en_US",
    fetch: async () => Response.json({ messages: [{ id: "wamid.X" }] }),
  });
  const sms = { name: "own", send: async () => ({ outcome: "accepted" as const }) };
  const verifierWith = (secret: string) => {
    const verifier = createVerifier({
      store,
      clock,
      secret,
      countries: ["FR"],
      logger: { info: log, warn: log, error: log },
      receipts: { baseUrl: "https://api.example.com", sources: [whatsappReceipts({ appSecret: "s".repeat(32), verifyToken: "v".repeat(20) })] },
      sender: router({
        clock,
        fallback: { after: 20 },
        routes: [
          { name: "whatsapp", sender: whatsapp, priority: 0 },
          { name: "sms", sender: sms },
        ],
      }),
    });
    onTestFinished(() => verifier.close());
    return verifier;
  };
  const before = verifierWith("qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6");
  const { authentication_uuid } = await before.createAuthentication({ phone_number: "+33612345678" });
  await before.close();

  const after = verifierWith("Zb4VnW8xK2mQ7tRj5LcH9sDfY3gPaE6u");
  for (let step = 0; step < 12; step++) {
    await clock.advance(5_000);
    await after.flush();
  }
  const { decisions } = await after.explain({ authentication_uuid });
  expect(JSON.stringify([lines, decisions])).toMatch(/secret|"rule":"fallback"/);
});

test("after a restart, phoneproof serve takes the receipts that wait at the SMPP center before anyone requests a code", async () => {
  const peer = await startPeer();
  onTestFinished(() => peer.stop());
  const serve = await command(
    "serve",
    `import { createVerifier } from "${built("index.js")}";
    import { smppSender } from "${built("senders/smpp.js")}";
    export const verifier = ({ store }) => {
      const sender = smppSender({
        host: "127.0.0.1", port: ${peer.port}, systemId: "${systemId}", password: "${password}", from: "ACME", idSpace: "acme",
        onReceipt: (receipt) => own.settleReceipts([receipt]),
      });
      const own = createVerifier({ store, sender, secret: "qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6", countries: ["FR"], customers: "store" });
      sender.connect().catch(() => undefined);
      return own;
    };`,
    ...["--port", "0", "--data", "memory"],
  );
  onTestFinished(() => serve.stop());
  await expect.poll(serve.output).toContain("listening");

  await expect.poll(() => peer.of("bind_transceiver").length, { timeout: 1_500 }).toBe(1);
});
