import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { verifyWebhook } from "../../clients/webhooks.js";
import { toWebhook } from "../../src/callbacks/webhook.js";
import type { Authentication, OutboxEvent } from "../../src/domain/authentication.js";
import type { CallbackRequest, CallbackResponse, Customers } from "../../src/index.js";
import { numberOf, setUp, start } from "../support/verifier.js";

const customer = randomUUID();
const keys = [`pp_${randomUUID()}${randomUUID()}`];
const secretOf = (length: number, byte = 7) => `whsec_${Buffer.alloc(length, byte).toString("base64")}`;
const good = secretOf(32, 0xfb);

/** A verifier whose callbacks go to a function. */
function withSender(options: Parameters<typeof setUp>[0], answer: (request: CallbackRequest) => unknown = () => ({ status: 204 })) {
  const posted: CallbackRequest[] = [];
  const post = async (request: CallbackRequest) => {
    posted.push(request);
    return answer(request) as CallbackResponse;
  };
  const set = setUp({ ...options, callbacks: { worker: false, allowOrigins: ["http://receiver.test"], sender: { post } } });
  const create = (customer_uuid = customer) =>
    set.verifier.createAuthentication({ customer_uuid, phone_number: numberOf(1), callback_url: "http://receiver.test/" });
  return { ...set, posted, create };
}

const configured = (webhookSecrets: unknown) => withSender({ customers: [{ customer_uuid: customer, keys, webhookSecrets: webhookSecrets as string[] }] });

const form = "must be whsec_ and 24 to 64 bytes in base64; make one with: echo";

/** Invalid lists of secrets, with the error for each. */
const junk: readonly (readonly [what: string, secrets: unknown, fault: string])[] = [
  ["an empty list", [], "webhookSecrets must hold at least one secret; leave it out for those made of the verifier's own"],
  ["eleven", Array(11).fill(good), "webhookSecrets must hold at most 10 secrets: each adds a signature to one header"],
  ["one that is no list", good, "webhookSecrets must be a list"],
  ["an empty string for a list", "", "webhookSecrets must be a list"],
  ["0", 0, "webhookSecrets must be a list"],
  ["false", false, "webhookSecrets must be a list"],
  ["an object", { 0: good, length: 1 }, "webhookSecrets must be a list"],
  ["a Set", new Set([good]), "webhookSecrets must be a list"],
  ["an empty one", [""], `webhookSecrets.0 ${form}`],
  ["white space", [" \n"], `webhookSecrets.0 ${form}`],
  ["the prefix alone", ["whsec_"], `webhookSecrets.0 ${form}`],
  ["the prefix and a line break", ["whsec_\n"], `webhookSecrets.0 ${form}`],
  ["the word undefined", ["undefined"], `webhookSecrets.0 ${form}`],
  ["the word undefined behind the prefix", ["whsec_undefined"], `webhookSecrets.0 ${form}`],
  ["one byte", [secretOf(1)], `webhookSecrets.0 ${form}`],
  ["23 bytes", [secretOf(23)], `webhookSecrets.0 ${form}`],
  ["65 bytes", [secretOf(65)], `webhookSecrets.0 ${form}`],
  ["66 bytes", [secretOf(66)], `webhookSecrets.0 ${form}`],
  ["base64 that breaks off", [`whsec_${"a".repeat(33)}`], `webhookSecrets.0 ${form}`],
  ["padding too short", [good.replace(/=+$/, "").slice(0, -1).concat("=")], `webhookSecrets.0 ${form}`],
  ["padding too long", [`${good}=`], `webhookSecrets.0 ${form}`],
  ["padding that is not needed", [`${secretOf(24)}==`], `webhookSecrets.0 ${form}`],
  ["no prefix", [good.slice(6)], `webhookSecrets.0 ${form}`],
  ["the prefix in capitals", [good.replace("whsec", "WHSEC")], `webhookSecrets.0 ${form}`],
  ["an asymmetric key", [good.replace("whsec", "whpk")], `webhookSecrets.0 ${form}`],
  ["the URL-safe alphabet", [good.replaceAll("+", "-").replaceAll("/", "_")], `webhookSecrets.0 ${form}`],
  ["two in one", [`${good} ${good}`], `webhookSecrets.0 ${form}`],
  ["quotation marks", [`"${good}"`], `webhookSecrets.0 ${form}`],
  ["a good one before a bad one", [good, ""], `webhookSecrets.1 ${form}`],
  ["undefined in a list", [undefined], "webhookSecrets.0 must be a string"],
  ["null in a list", [null], "webhookSecrets.0 must be a string"],
  ["bytes in a list", [Buffer.alloc(32, 7)], "webhookSecrets.0 must be a string"],
  ["a list in a list", [[good]], "webhookSecrets.0 must be a string"],
  ["a hole in a list", Object.assign([good], { 2: good }), "webhookSecrets.1 must be a string"],
];

describe("nothing is signed with an invalid secret", () => {
  it.each(junk)("configured as %s: creating the verifier fails, and the error names the path", (_what, secrets, fault) => {
    expect(() => configured(secrets)).toThrow(
      expect.objectContaining({ code: "invalid_options", message: expect.stringContaining(`phoneproof: customers.0.${fault}`) }),
    );
  });

  it.each(junk)("%s from a customer source: nothing is posted, failures are logged once a minute, and the event is retried", async (_what, secrets, fault) => {
    let webhookSecrets: unknown = [good];
    const answer = async () => ({ customer_uuid: customer, webhookSecrets }) as Awaited<ReturnType<Customers["find"]>>;
    const set = withSender({ customers: { find: answer, findByKeyDigest: answer } });
    const { authentication_uuid } = await set.create();

    webhookSecrets = secrets;
    const errors = () => set.log.lines.filter(({ level }) => level === "error");
    for (const [tries, wait] of [6_000, 360_000, 2_160_000].entries()) {
      expect(await set.verifier.flush()).toEqual({ delivered: 0, failed: 1, dead: 0 });
      expect(await set.verifier.flush(), "not before its time").toEqual({ delivered: 0, failed: 0, dead: 0 });
      expect(errors()).toHaveLength([1, 1, 2][tries] as number);
      set.clock.advance(wait);
    }
    expect(errors()).toMatchObject([
      { message: "the customer source failed", fields: { customer_uuid: customer, err: expect.stringContaining(`customer.${fault}`) } },
      { message: "the customer source still fails", fields: { failures: 3, reason: expect.stringContaining(`customer.${fault}`) } },
    ]);
    const warned = set.log.lines.filter(({ level }) => level === "warn");
    expect(warned).toHaveLength(2);
    for (const { fields } of warned) expect(fields).toMatchObject({ authentication_uuid, sequence: 1, reason: expect.stringContaining(fault) });
    expect(JSON.stringify(set.log.lines), "no secret is told").not.toContain(good.slice(6));
    expect(set.posted).toEqual([]);
    await expect(set.verifier.webhookSecrets(customer)).rejects.toMatchObject({ code: "unavailable" });

    webhookSecrets = [good];
    expect(await set.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
    const [{ headers, body }] = set.posted as [CallbackRequest];
    expect(verifyWebhook({ secret: good, headers, body, now: set.clock.now() }).data).toMatchObject({ authentication_uuid, sequence: 1 });
  });

  it("an event that was never deliverable is listed with the reason once it is given up", async () => {
    let webhookSecrets = [good];
    const answer = () => ({ customer_uuid: customer, webhookSecrets });
    const set = withSender({ customers: { find: answer, findByKeyDigest: answer } });
    await set.create();
    webhookSecrets = [];
    for (let hour = 0; hour < 5 * 24; hour++) {
      await set.verifier.flush();
      set.clock.advance(3_600_000);
    }
    expect(set.posted).toEqual([]);
    const [letter, ...more] = await set.verifier.deadLetters();
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      sequence: 1,
      reason: expect.stringContaining("at last: phoneproof: customer.webhookSecrets must hold at least one secret"),
    });
    webhookSecrets = [good];
    expect(await set.verifier.redeliver(letter as NonNullable<typeof letter>)).toBe(true);
    expect(await set.verifier.flush()).toEqual({ delivered: 1, failed: 0, dead: 0 });
  });

  it("the function that signs rejects invalid secrets, whoever calls it", () => {
    const event = { sequence: 1, attempt: 1, status: "submitted", at: start, tries: 0, nextAt: start } as OutboxEvent;
    const auth = { id: randomUUID(), createdAt: start, number: numberOf(1) } as Authentication;
    for (const secrets of [[], [""], ["whsec_"], ["undefined"], [secretOf(23)], [good, ""], ["", good]])
      expect(() => toWebhook(auth, event, secrets, false, start)).toThrow("every secret that signs a callback must be whsec_ and 24 to 64 bytes in base64");
    expect(toWebhook(auth, event, [good], false, start).headers["webhook-signature"]).toMatch(/^v1,[\w+/]{43}=$/);
  });
});

describe("configured secrets", () => {
  it.each([
    ["24 bytes", secretOf(24), secretOf(24)],
    ["32 bytes", good, good],
    ["64 bytes", secretOf(64), secretOf(64)],
    ["without padding", good.replace(/=+$/, ""), good.replace(/=+$/, "")],
    ["with a line break of the file it came from", `${good}\n`, good],
    ["with white space around it", ` \t${good}\r\n`, good],
  ])("%s: the secret that is handed out verifies, here and with the package `standardwebhooks`", async (_what, secret, handedOut) => {
    const set = configured([secret]);
    await set.create();
    await set.verifier.flush();
    const [{ headers, body }] = set.posted as [CallbackRequest];
    expect(await set.verifier.webhookSecrets(customer)).toEqual([handedOut]);
    for (const one of [secret, handedOut]) expect(verifyWebhook({ secret: one, headers, body, now: start })).toEqual(JSON.parse(body));
    expect(headers["webhook-signature"]).toBe(new Webhook(handedOut).sign(headers["webhook-id"] as string, new Date(start), body));
  });

  it("ten secrets make ten signatures, each of which verifies alone, in a header of acceptable size", async () => {
    const secrets = Array.from({ length: 10 }, (_, index) => secretOf(64, index));
    const set = configured(secrets);
    await set.create();
    await set.verifier.flush();
    const [{ headers, body }] = set.posted as [CallbackRequest];
    for (const secret of secrets) verifyWebhook({ secret, headers, body, now: start });
    expect(headers["webhook-signature"]?.split(" ")).toHaveLength(10);
    expect(JSON.stringify(headers).length).toBeLessThan(1_000);
  });

  it("a secret of another customer does not verify a customer's callbacks", async () => {
    const other = randomUUID();
    const set = withSender({
      customers: [
        { customer_uuid: customer, keys },
        { customer_uuid: other, keys: [`pp_${randomUUID()}${randomUUID()}`] },
      ],
    });
    await set.create();
    await set.verifier.flush();
    const [{ headers, body }] = set.posted as [CallbackRequest];
    const [mine] = (await set.verifier.webhookSecrets(customer.toUpperCase())) as [string];
    const [theirs] = (await set.verifier.webhookSecrets(other)) as [string];
    expect(verifyWebhook({ secret: mine, headers, body, now: start })).toEqual(JSON.parse(body));
    expect(() => verifyWebhook({ secret: theirs, headers, body, now: start })).toThrow("no signature");
  });

  it.each(["", "acme", "pp_a key instead of the UUID"])("%j has none, because it is not a UUID", async (uuid) => {
    await expect(withSender({}).verifier.webhookSecrets(uuid)).rejects.toMatchObject({ code: "bad_request", message: expect.stringContaining("a UUID") });
  });
});

describe("a faulty callback sender", () => {
  const throwing = (thrown: unknown) => () => {
    throw thrown;
  };

  it.each([
    ["an error of a megabyte", throwing(new Error("x".repeat(1_000_000))), "x".repeat(500)],
    ["a failure of a megabyte", () => ({ failed: "x".repeat(1_000_000) }), "x".repeat(500)],
    ["a string", throwing("no route"), "no route"],
    ["an object with a message", throwing({ message: "no route" }), "no route"],
    ["an object without a prototype", throwing(Object.create(null)), "no error was thrown, but something else"],
    ["an error whose message is none", throwing(Object.assign(new Error(), { message: { secret: 1 } })), "no error was thrown, but something else"],
    ["undefined", throwing(undefined), "no error was thrown, but something else"],
    ["a symbol", throwing(Symbol("no")), "no error was thrown, but something else"],
    ["nothing", () => undefined, "the callback sender returned neither a status nor an error"],
    ["a status that is a string", () => ({ status: "204" }), "the callback sender returned neither a status nor an error"],
    ["a status that is NaN", () => ({ status: Number.NaN }), "the callback sender returned neither a status nor an error"],
    [
      "an answer that throws when it is read",
      () => ({
        get status() {
          throw new Error("gone");
        },
      }),
      "gone",
    ],
  ])("%s: the event is retried, and the reason is reported in at most 500 characters", async (_what, answer, reason) => {
    const set = withSender({ customers: [{ customer_uuid: customer, keys }] }, answer);
    await set.create();
    for (let hour = 0; hour < 5 * 24; hour++) {
      await set.verifier.flush();
      set.clock.advance(3_600_000);
    }
    expect(set.posted).toHaveLength(10);
    expect((await set.verifier.deadLetters()).map((letter) => letter.reason)).toEqual([`not delivered within three days, at last: ${reason}`]);
    const told = set.log.lines.filter(({ level }) => level === "warn").map(({ fields }) => fields["reason"]);
    expect(told).toEqual(Array(9).fill(reason));
  });
});
