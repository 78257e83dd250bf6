import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { smppSender } from "../../adapters/sms/smpp/index.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type DeliveryStatusEvent, type Verifier, type VerifierOptions } from "../../src/index.js";
import { router } from "../../src/routing/router.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { type Peer, password, startPeer, systemId } from "../support/smpp.js";
import { logger, numberOf, secret } from "../support/verifier.js";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function centre(): Promise<Peer> {
  const peer = await startPeer();
  closing.push(() => peer.stop());
  return peer;
}

/** A message centre's receipt, in the form of SMPP 3.4, appendix B. */
const receipt = (id: string, stat: string) => ({
  esm_class: 4,
  source_addr: "33612000001",
  destination_addr: "Acme",
  short_message: `id:${id} sub:001 dlvrd:001 submit date:2611220130 done date:2611220131 stat:${stat} err:000 text:Your`,
});

/** A verifier with the sender that `make` builds, and the events of its callbacks. */
function withSender(make: (verifier: () => Verifier) => VerifierOptions["sender"]) {
  const events: DeliveryStatusEvent["data"][] = [];
  const customer_uuid = randomUUID();
  const verifier: Verifier = createVerifier({
    store: memoryStore({ name: randomUUID() }),
    sender: make(() => verifier),
    secret,
    countries: "all",
    customers: [{ customer_uuid, keys: [`pp_${randomUUID()}${randomUUID()}`] }],
    policy: { spam: noSpamRules },
    logger: logger(),
    callbacks: {
      worker: false,
      allowOrigins: ["http://receiver.test"],
      sender: { post: async ({ body }) => ({ status: events.push((JSON.parse(body) as DeliveryStatusEvent).data) > 0 ? 200 : 500 }) },
    },
  });
  closing.push(() => verifier.close());
  const create = (index: number) =>
    verifier.createAuthentication({ customer_uuid, phone_number: numberOf(index), callback_url: "http://receiver.test/" } as never);
  /** The statuses that callbacks reported for an authentication, once `status` is among them. */
  const told = (id: string, status: string) =>
    vi.waitFor(async () => {
      await verifier.flush();
      const statuses = events.filter(({ authentication_uuid }) => authentication_uuid === id).map((event) => event.status);
      expect(statuses).toContain(status);
      return statuses;
    });
  return { verifier, create, told, events };
}

describe("receipts of a real SMPP peer, up to the caller's callback", () => {
  it("the line in docs/carriers.md works without a receipts option: smppSender({ …, onReceipt: (receipt) => verifier.settleReceipts([receipt]) })", async () => {
    const peer = await centre();
    const { create, told } = withSender((verifier) =>
      smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, onReceipt: (receipt) => verifier().settleReceipts([receipt]) }),
    );
    const { authentication_uuid } = await create(1);
    peer.sessions[0]?.deliver_sm(receipt("m1", "DELIVRD"), () => {});
    expect(await told(authentication_uuid, "delivered")).toEqual(["submitted", "delivered"]);
  });

  it("a receipt that arrives before the response to its submit is reported", async () => {
    const peer = await centre();
    peer.on("submit_sm", (pdu, session) => session.deliver_sm(receipt("early-1", "REJECTD"), () => session.send(pdu.response({ message_id: "early-1" }))));
    const { create, told } = withSender((verifier) =>
      smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, onReceipt: (receipt) => verifier().settleReceipts([receipt]) }),
    );
    const { authentication_uuid } = await create(1);
    expect(await told(authentication_uuid, "undeliverable")).toContain("undeliverable");
  });

  it("the first of two final receipts that arrive before the response counts (docs/contract.md#receipt-order)", async () => {
    const peer = await centre();
    peer.on("submit_sm", (pdu, session) =>
      session.deliver_sm(receipt("early-2", "DELIVRD"), () =>
        session.deliver_sm(receipt("early-2", "UNDELIV"), () => session.send(pdu.response({ message_id: "early-2" }))),
      ),
    );
    const { create, told } = withSender((verifier) =>
      smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, onReceipt: (receipt) => verifier().settleReceipts([receipt]) }),
    );
    const { authentication_uuid } = await create(1);
    const statuses = await told(authentication_uuid, "delivered");
    expect(statuses).not.toContain("undeliverable");
  });

  it("UNDELIV causes the fallback of a router whose routes are all SMPP, without a receipts option", async () => {
    const [one, two] = [await centre(), await centre()];
    one.on("submit_sm", (pdu, session) => {
      session.send(pdu.response({ message_id: "m1" }));
      session.deliver_sm(receipt("m1", "UNDELIV"), () => {});
    });
    const { create, told, verifier } = withSender((verifier) =>
      router({
        routes: [one, two].map((peer, index) => ({
          name: `centre-${index}`,
          priority: index,
          sender: smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, onReceipt: (receipt) => verifier().settleReceipts([receipt]) }),
        })),
        fallback: { on: ["undeliverable"], worker: "elsewhere" },
      }),
    );
    const { authentication_uuid } = await create(1);
    await told(authentication_uuid, "undeliverable");
    await verifier.flush();
    expect(two.of("submit_sm")).toHaveLength(1);
  });

  it("if two centres both use the id 1001, a receipt of one is not reported for the other's message", async () => {
    const [one, two] = [await centre(), await centre()];
    for (const peer of [one, two]) peer.on("submit_sm", (pdu, session) => session.send(pdu.response({ message_id: "1001" })));
    const { create, told, events } = withSender((verifier) =>
      router({
        routes: [one, two].map((peer, index) => ({
          name: `centre-${index}`,
          prefixes: [numberOf(index + 1)],
          sender: smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, onReceipt: (receipt) => verifier().settleReceipts([receipt]) }),
        })),
      }),
    );
    const [first, second] = [await create(1), await create(2)];
    one.sessions[0]?.deliver_sm(receipt("1001", "UNDELIV"), () => {});
    two.sessions[0]?.deliver_sm(receipt("1001", "DELIVRD"), () => {});
    await told(second.authentication_uuid, "delivered");
    await told(first.authentication_uuid, "undeliverable");
    const final = (id: string) => events.filter(({ authentication_uuid }) => authentication_uuid === id).map(({ status }) => status);
    expect(final(first.authentication_uuid)).not.toContain("delivered");
    expect(final(second.authentication_uuid)).not.toContain("undeliverable");
  });
});
