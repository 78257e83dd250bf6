import type { SmsSender } from "phoneproof";
import { smppSender } from "phoneproof/senders/smpp";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/ports.js";
import { aMessage } from "../support/smpp.js";
import { senderTo, startCarrier, startMessageCentre, verifierWithFailover } from "./carriers-in-production-kit.js";

const number = "+33612345678";

async function carrier(...options: Parameters<typeof startCarrier>) {
  const started = await startCarrier(...options);
  onTestFinished(() => started.stop());
  return started;
}

async function messageCentre(binds: boolean) {
  const started = await startMessageCentre(binds);
  onTestFinished(() => started.stop());
  return smpp(started.port);
}

/** One unanswered message fills its window. It reconnects often, as it does within the five seconds of a real message. */
function smpp(port: number) {
  const account = { host: "127.0.0.1", port, systemId: "acme", password: "s3cret", from: "Acme" };
  return smppSender({ ...account, window: 1, rebind: { min: 0.05, max: 0.1 }, drainTimeout: 0.1 });
}

/** What a sender says of one message. */
function send(sender: SmsSender) {
  return sender.send(aMessage({ to: number, country: "FR" }), { signal: AbortSignal.timeout(1_000), deadline: Date.now() + 1_000, timeLeft: 1_000 });
}

describe("a route that has not sent the message leaves the next one time to send it (docs/operations.md, when something is down)", () => {
  test("a message centre that refuses connections", async () => {
    let left = 0;
    const second: SmsSender = {
      async send(_message, { timeLeft }) {
        left = timeLeft;
        return { outcome: "accepted" };
      },
    };
    const verifier = verifierWithFailover(smpp(await freePort()), second);
    onTestFinished(() => verifier.close());

    await verifier.createAuthentication({ phone_number: number });

    // Of a second. Carriers need some hundred milliseconds to respond.
    expect(left).toBeGreaterThan(300);
  });

  test("a message centre that accepts connections and no bind: carrier_refused only if no route took it (docs/contract.md#facts)", async () => {
    const second = await carrier();
    const verifier = verifierWithFailover(await messageCentre(false), senderTo(second));
    onTestFinished(() => verifier.close());

    const { carrier_refused } = await verifier.createAuthentication({ phone_number: number });

    expect({ carrier_refused, messagesOfTheSecond: second.requests.length }).toEqual({ carrier_refused: undefined, messagesOfTheSecond: 1 });
  });

  test("a message centre whose window stays full", async () => {
    const second = await carrier();
    const first = await messageCentre(true);
    const verifier = verifierWithFailover(first, senderTo(second));
    onTestFinished(() => verifier.close());
    const filling = send(first);

    const { carrier_refused } = await verifier.createAuthentication({ phone_number: number });
    await filling;

    expect({ carrier_refused, messagesOfTheSecond: second.requests.length }).toEqual({ carrier_refused: undefined, messagesOfTheSecond: 1 });
  });
});
