import { randomUUID } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { reportOf } from "../../src/cli/operators/why.js";
import type { VerifierEvent } from "../../src/index.js";
import { fixedClock } from "../../src/testing/index.js";
import { start as noon } from "../support/verifier.js";
import { chance } from "./by-number-kit.js";
import {
  type Authentication,
  type Expected,
  type House,
  type HouseOptions,
  house,
  type Json,
  mine,
  NumberModel,
  type Outcome,
  type Reply,
  target,
  theirs,
  uuidOf,
} from "./interplay-kit.js";
import { callbackUrl, hook, noSpamRules, sender, turns } from "./kit.js";

const number = "+33612345678";
const of = { customer_uuid: mine, phone_number: number };
const day = 86_400_000;
const iso = (at: number) => new Date(at).toISOString();

/** One verifier with its own store and clock. */
function alone(options: HouseOptions = {}): House {
  const clock = fixedClock(noon);
  const one = house(memoryStore({ name: randomUUID(), now: clock.now }), { clock, ...options });
  onTestFinished(() => one.verifier.close());
  return one;
}

/** Flushes callbacks for `minutes`, advancing the clock a minute at a time. */
async function flushed({ verifier, clock }: House, minutes: number): Promise<void> {
  for (let i = 0; i < minutes; i++) {
    await verifier.flush();
    clock.advance(60_000);
    if (i % 60 === 0) await turns(2);
  }
}

const brief = ({ status, json }: Reply) => `${status} ${json.code ?? json.status}`;
const facts = ({ headers }: Reply) => ({
  remaining_retry: headers["x-phoneproof-remaining-retry"],
  remaining_checks: headers["x-phoneproof-remaining-checks"],
  next_retry_at: headers["x-phoneproof-next-retry-at"],
  retry_after: headers["x-phoneproof-retry-after"],
  carrier_refused: headers["x-phoneproof-carrier-refused"],
  phone_number: headers["x-phoneproof-phone-number"],
});
const none = {
  remaining_retry: undefined,
  remaining_checks: undefined,
  next_retry_at: undefined,
  retry_after: undefined,
  carrier_refused: undefined,
  phone_number: undefined,
};

/** Runs a random story over all APIs; returns where it differs from the model. */
async function story(seed: number, steps: number): Promise<string[]> {
  const dice = chance(seed * 7_919);
  const clock = fixedClock(noon);
  const store = memoryStore({ name: randomUUID(), now: clock.now });
  const out = sender();
  let outcome: Outcome = "accepted";
  out.answer = async () => ({ outcome }) as never;
  const secrets = ["qT7vX2mR9kLw4ZbN8cJfH5sYdG3pAeU6", "Zp3nW8cVb6tKq1sMx9dRf4gHj7yLu2Ea"] as const;
  const set = [house(store, { clock, out, secret: secrets }), house(store, { clock, out, secret: [secrets[1], secrets[0]] })];
  const models = new Map<string, NumberModel>();
  const repeats: (() => Promise<void>)[] = [];
  const told: string[] = [];
  const found: string[] = [];

  for (let step = 0; step < steps && found.length === 0; step++) {
    const customer = dice.next() < 0.8 ? mine : theirs;
    const phone_number = dice.one(["+33612345678", "+447400123456"]);
    const name = `${customer.slice(0, 4)} ${phone_number}`;
    const model = models.get(name) ?? new NumberModel(clock.now);
    models.set(name, model);
    const h = dice.one(set).as(customer);
    const { verifications } = h.verifier;
    const whose = { customer_uuid: customer, phone_number };
    outcome = dice.next() < 0.8 ? "accepted" : dice.one(["rejected", "unknown"] as const);
    const before = out.messages.length;
    const differ = (what: string) => found.push(`seed ${seed}, step ${step}: ${what}\n  ${told.slice(-12).join("\n  ")}`);
    const same = (what: string, wanted: unknown, got: unknown) => {
      if (wanted !== got) differ(`${what}: ${got} instead of ${wanted}`);
    };
    const say = (what: string, e: { readonly status: string }) => told.push(`${iso(clock.now())} ${name} ${what} [${outcome}] ${e.status}`);
    /** Compares a response with the model, in the fields that this API has. */
    const compare = (what: string, e: Expected, got: Json) => {
      say(what, e);
      same(`${what}: status`, e.status, got.status);
      for (const field of ["remaining_retry", "remaining_checks", "carrier_refused", "is_open", "attempt"] as const)
        if (field in e && field in got) same(`${what}: ${field}`, e[field]?.toString(), got[field]?.toString());
      if ("retry_after" in e && "retry_after" in got) same(`${what}: retry_after`, e.retry_after?.toString(), got.retry_after?.toString());
      if ("next_retry_at" in e && "next_retry_at" in got) same(`${what}: next_retry_at`, e.next_retry_at && iso(e.next_retry_at), got.next_retry_at);
      if (e.phone !== undefined && "phone_number" in got) same(`${what}: phone_number`, e.phone ? phone_number : undefined, got.phone_number);
      if (e.of && got.authentication_uuid) {
        if (e.of.id === "") e.of.id = got.authentication_uuid;
        same(`${what}: id`, e.of.id, got.authentication_uuid);
      }
      sentAs(what, e);
    };
    const sentAs = (what: string, e: Expected) => {
      const sent = out.messages.slice(before);
      same(`${what}: messages sent`, e.sends ? 1 : 0, sent.length);
      const message = sent[0];
      if (!e.sends || !e.of || !message) return;
      if (e.of.id === "") e.of.id = message.authentication_uuid;
      same(`${what}: the message's authentication`, e.of.id, message.authentication_uuid);
      same(`${what}: the message's attempt`, e.of.attempts, message.attempt);
      if (outcome !== "rejected") e.of.codes.push(message.code);
    };
    const known = model.all.filter((one) => one.id !== "" && model.isStored(one));
    const roll = dice.next();

    if (roll < 0.12) {
      const e = model.create(undefined, outcome);
      if (dice.next() < 0.5) {
        const reply = await h.v1("authentication", { phone_number });
        compare("v1 create", e, { ...reply.json, ...facts(reply) });
        same("v1 create: expires_at", iso(e.of?.expires as number), reply.json.expires_at);
      } else compare("create", e, { ...none, ...(await h.verifier.createAuthentication(whose)) });
    } else if (roll < 0.2 && known.length > 0) {
      const one = dice.one(known);
      const e = model.retry(one, outcome);
      if (dice.next() < 0.5) {
        const reply = await h.v1("retry", { authentication_uuid: one.id });
        compare("v1 retry", e, { ...facts(reply), ...reply.json });
        same("v1 retry: header and body", reply.json.next_retry_at, facts(reply).next_retry_at);
      } else compare("retry", e, { ...none, ...(await h.verifier.retry({ customer_uuid: customer, authentication_uuid: one.id })) });
    } else if (roll < 0.42 && known.length > 0) {
      const one = dice.one(known.slice(-4));
      if (model.locked() === "unsure" || one.codes.includes("000000")) continue;
      const code = dice.next() < 0.3 && one.codes.length > 0 ? dice.one(one.codes.slice(-3)) : "000000";
      const e = model.check(one, code);
      const id = { customer_uuid: customer, authentication_uuid: one.id, check_code: code };
      const way = dice.below(4);
      if (way === 0) {
        const reply = await h.v1("check", { authentication_uuid: one.id, check_code: code });
        compare("v1 check", e, { ...reply.json, ...facts(reply) });
      } else if (way === 1) compare("check", e, { ...none, ...(await h.verifier.check(id)) });
      else if (way === 2) {
        const got = await verifications.check(id);
        const ended = e.status === "expired_auth" || e.status === "already_validated";
        if (ended || one.refused) {
          say("check by number's id", e);
          same("verifications.check by id", ended ? "not_found" : "rate_limited", got.status);
        } else compare("verifications.check by id", e, { ...none, ...got });
      } else {
        const reply = await h.twilio("POST", "/VerificationCheck", { VerificationSid: `VE${one.id.replaceAll("-", "")}`, Code: code });
        say("Twilio check by SID", e);
        same("Twilio check by SID", twilioCheck(e.status), brief(reply));
      }
    } else if (roll < 0.6) {
      const scope = dice.one(["default", "pay", "twilio", "prelude"]);
      const usedUp = scope === "twilio" ? "wait" : scope === "prelude" ? "anew" : dice.one(["anew", "wait"] as const);
      const wasOpen = model.open(scope, usedUp) !== undefined;
      const e = model.start(scope, usedUp, outcome);
      if (scope === "twilio") {
        const reply = await h.twilio("POST", "/Verifications", { To: phone_number, Channel: "sms" });
        say("Twilio create", e);
        same("Twilio create", e.status === "pending" ? "201 pending" : e.status === "denied" ? "429 60212" : "429 60203", brief(reply));
        if (reply.json.sid && e.of && e.of.id !== "") same("Twilio create: SID", e.of.id, uuidOf(reply.json.sid));
        sentAs("Twilio create", e);
      } else if (scope === "prelude") {
        const reply = await h.prelude("", { target: target(phone_number) });
        say("Prelude create", e);
        const refused = wasOpen ? (e.status === "denied" ? "429 premature_retry" : "429 too_many_attempts") : "200 blocked";
        same("Prelude create", e.status === "pending" ? (wasOpen ? "200 retry" : "200 success") : refused, brief(reply));
        sentAs("Prelude create", e);
      } else compare(`start ${scope} ${usedUp}`, e, { ...none, ...(await verifications.start(whose, { scope, usedUp })) });
    } else if (roll < 0.76) {
      const scope = dice.one(["default", "pay", "twilio", "prelude"]);
      const last = model.all.filter((one) => one.scope === scope).at(-1);
      if (model.locked() === "unsure" || last?.codes.includes("000000")) continue;
      const code = last && last.codes.length > 0 && dice.next() < 0.3 ? dice.one(last.codes.slice(-3)) : "000000";
      const e = model.checkByNumber(scope, code);
      if (scope === "twilio") {
        say("Twilio check", e);
        same("Twilio check", twilioCheck(e.status), brief(await h.twilio("POST", "/VerificationCheck", { To: phone_number, Code: code })));
      } else if (scope === "prelude") {
        const reply = await h.prelude("/check", { target: target(phone_number), code });
        say("Prelude check", e);
        const names: Record<string, string> = { valid: "200 success", invalid: "200 failure", rate_limited: "429 too_many_checks" };
        same("Prelude check", names[e.status] ?? "200 expired_or_not_found", brief(reply));
      } else {
        const got = await verifications.check({ ...whose, check_code: code }, { scope });
        compare(`check ${scope}`, e, got.status === "not_found" ? got : { ...none, ...got });
      }
    } else if (roll < 0.8) {
      const scope = dice.one(["default", "pay", "twilio"]);
      const open = model.open(scope);
      if (scope === "twilio") {
        const reply = await h.twilio("POST", `/Verifications/${encodeURIComponent(phone_number)}`, { Status: "canceled" });
        same("Twilio cancel", open ? "200 canceled" : "404 20404", brief(reply));
      } else {
        const got = await verifications.cancel(whose, { scope });
        same("cancel", open?.id, got?.authentication_uuid);
        if (got)
          same("what is left of a canceled one", "canceled 0 0 undefined", `${got.status} ${got.remaining_checks} ${got.remaining_retry} ${got.next_retry_at}`);
      }
      if (open) open.end = "canceled";
      told.push(`${iso(clock.now())} ${name} cancel ${scope}`);
    } else if (roll < 0.84) {
      const scope = dice.one(["default", "pay"]);
      const latest = model.latest(scope);
      const got = await verifications.get(whose, { scope });
      // A rejected start does not replace the latest verification that was sent.
      same("get", latest?.id, got?.authentication_uuid);
      if (got && latest) {
        const status = latest.end ?? (clock.now() >= latest.expires || latest.nothingSent ? "expired" : latest.wrong >= 5 ? "used_up" : "open");
        compare("get", { ...model.standing(latest), status, sends: false, phone: true }, { ...none, ...got });
        same("get: attempts", latest.attempts, got.attempts);
      }
    } else if (roll < 0.88 && known.length > 0) {
      const one: Authentication = dice.one(known);
      const got = await h.verifier.explain({ customer_uuid: customer, authentication_uuid: one.id });
      const left = model.standing(one);
      if (model.locked() !== "unsure") same("explain: left.checks", model.locked() === "yes" ? 0 : left.remaining_checks, got.left.checks);
      same("explain: left.retries", left.remaining_retry, got.left.retries);
      same("explain: wrong_codes", one.wrong, got.wrong_codes);
      same("explain: validated", one.end === "verified", got.validated);
      same("explain: sends", Math.min(3, one.codes.length), got.sends.filter(({ state }) => state !== "rejected").length);
    } else if (roll < 0.9) {
      const cap = model.blocked();
      const got = await h.verifier.deliver({ ...whose, code: String(100_000 + step) });
      told.push(`${iso(clock.now())} ${name} deliver [${outcome}] ${got.status}`);
      same("deliver", cap ? "rate_limited" : { accepted: "sent", unknown: "pending", rejected: "no_route" }[outcome], got.status);
      if (!cap) model.delivered();
    } else if (roll < 0.91) {
      told.push(`${iso(clock.now())} ${name} unlock`);
      same("unlock", model.unlock(), (await h.verifier.unlock(whose)).unlocked);
    } else if (roll < 0.93 && repeats.length > 0) await dice.one(repeats)();
    else if (roll < 0.945) {
      const idempotencyKey = `key ${step}`;
      const scope = dice.one([undefined, "default", "pay"]);
      const e = scope === undefined ? model.create(undefined, outcome) : model.start(scope, "anew", outcome);
      const call = async (one: House): Promise<Json> =>
        scope === undefined
          ? dice.next() < 0.5
            ? one.verifier.createAuthentication(whose, { idempotencyKey })
            : (await one.v1("authentication", { phone_number }, { "idempotency-key": idempotencyKey })).json
          : one.verifier.verifications.start(whose, { scope, idempotencyKey });
      const first = await call(h);
      compare(`${scope ?? "create"} under a key`, e, first);
      if (scope === undefined || first.status === "pending")
        repeats.push(async () => {
          const one = e.of as Authentication;
          if (!model.isStored(one) || (scope !== undefined && model.latest(scope) !== one)) return;
          const count = out.messages.length;
          const again = await call(dice.one(set).as(customer));
          told.push(`${iso(clock.now())} repeat of ${idempotencyKey}`);
          for (const field of ["authentication_uuid", "status", "created_at", "expires_at", "attempt"]) same(`repeat: ${field}`, first[field], again[field]);
          same("repeat: messages sent", count, out.messages.length);
        });
    } else {
      const ms = dice.one([1, 999, 29_999, 30_000, 30_001, 60_000, 90_000, 120_000, 599_999, 600_000, 3_600_000, 21_600_000, day - 1, day]);
      clock.advance(ms);
      told.push(`+${ms}`);
    }
    await turns(2);
  }
  for (const one of set) await one.verifier.close();
  return found;
}

const twilioCheck = (status: string) =>
  ({ valid: "200 approved", invalid: "200 pending", without_attempt: "200 pending", rate_limited: "429 60202" })[status] ?? "404 20404";

describe("one number through all APIs, compared with a model", () => {
  it("/v1, direct calls, by number, Twilio Verify, Prelude v2 and deliver agree on statuses, remaining tries, caps and guesses (docs/contract.md#life-of-an-authentication)", async () => {
    const found: string[] = [];
    for (let seed = 1; seed <= 25; seed++) found.push(...(await story(seed, 160)));
    expect(found).toEqual([]);
  });
});

/** Random requests through all APIs, with the messages sent and the reports about them. */
async function traffic(seed: number, steps: number) {
  const dice = chance(seed * 31_337);
  const clock = fixedClock(noon);
  const out = sender(0.03);
  const hooked = hook();
  const outcomes: Outcome[] = [];
  let outcome: Outcome = "accepted";
  out.answer = async () => {
    outcomes.push(outcome);
    return { outcome } as never;
  };
  const options = { statistics: { keep: 90 * 86_400 }, policy: { limits: { spend: [{ amount: 0.6, per: "day" }] } } } as const;
  const one = house(memoryStore({ name: randomUUID(), now: clock.now }), {
    clock,
    out,
    hook: hooked,
    ...options,
    testNumbers: [{ number: "+447700900123", code: "424242" }],
  });
  const { verifier } = one;
  const proven: string[] = [];
  for (let i = 0; i < steps; i++) {
    const phone_number = dice.next() < 0.1 ? "+447700900123" : `+33612${String(dice.below(5)).padStart(6, "0")}`;
    const whose = { customer_uuid: mine, phone_number };
    outcome = dice.next() < 0.7 ? "accepted" : dice.one(["rejected", "unknown"] as const);
    const url = dice.next() < 0.5 ? { callback_url: callbackUrl } : {};
    const newest = out.messages.filter(({ to }) => to === phone_number).at(-1);
    const roll = dice.next();
    if (roll < 0.15) await verifier.createAuthentication({ ...whose, ...url });
    else if (roll < 0.3) await verifier.verifications.start({ ...whose, ...url }, { scope: dice.one(["default", "pay"]) });
    else if (roll < 0.4) await one.twilio("POST", "/Verifications", { To: phone_number, Channel: "sms" });
    else if (roll < 0.5) await one.prelude("", { target: target(phone_number), options: url });
    else if (roll < 0.6) await verifier.deliver({ ...whose, ...url, code: String(100_000 + i) });
    else if (roll < 0.65) {
      if ((await verifier.confirm(whose)).status === "confirmed") proven.push(phone_number);
    } else if (roll < 0.72 && newest) await verifier.retry({ customer_uuid: mine, authentication_uuid: newest.authentication_uuid }).catch(() => {});
    else if (roll < 0.85 && newest) {
      const code = dice.next() < 0.5 ? newest.code : "000000";
      const reply = await dice.one([
        async () => (await one.v1("check", { authentication_uuid: newest.authentication_uuid, check_code: code })).json,
        async () => verifier.verifications.check({ ...whose, check_code: code }),
        async () => (await one.twilio("POST", "/VerificationCheck", { To: phone_number, Code: code })).json,
        async () => (await one.prelude("/check", { target: target(phone_number), code })).json,
      ])();
      if (["valid", "approved", "success"].includes(reply.status)) proven.push(phone_number);
    } else if (roll < 0.9) clock.advance(dice.one([30_000, 60_000, 90_000, 600_000, 3_600_000]));
    else if (roll < 0.92) await verifier.verifications.cancel(whose);
    else if (roll < 0.95) await verifier.flush();
    await turns(2);
  }
  for (let i = 0; i < 8; i++) {
    clock.advance(20_000);
    await verifier.flush();
  }
  await turns(20);
  return { one, out, hooked, outcomes, proven: proven.filter((to) => !to.startsWith("+447700")) };
}

describe("reports about requests through all APIs", () => {
  it("statistics, metrics, events and history agree with the messages sent (docs/watching.md#statistics)", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const { one, out, outcomes, proven } = await traffic(seed, 150);
      const { verifier, clock, events } = one;
      const metric = (name: string) =>
        verifier
          .metrics()
          .split("\n")
          .filter((line) => line.startsWith(`${name}{`))
          .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
      const told = (type: VerifierEvent["type"]) =>
        events.filter((event) => event.type === type && !("phone_number" in event && event.phone_number.startsWith("+447700")));
      const sent = outcomes.filter((outcome) => outcome !== "rejected").length;
      const stats = await verifier.stats({ customer_uuid: mine, from: new Date(noon - day), to: new Date(clock.now() + day) });
      expect(
        {
          ...stats,
          cost: Math.round(stats.cost * 100),
          events: told("sent").length,
          messages: metric("phoneproof_messages_total"),
          proven: metric("phoneproof_verified_total"),
        },
        `seed ${seed}`,
      ).toMatchObject({
        sends: sent,
        cost: sent * 3,
        verified: proven.length,
        refused: told("refused").length,
        events: outcomes.length,
        messages: outcomes.length,
        proven: proven.length,
      });
      for (const phone_number of new Set(out.messages.map(({ to }) => to))) {
        const history = await verifier.history({ customer_uuid: mine, phone_number, limit: 1_000 });
        const ids = new Set(history.map(({ authentication_uuid }) => authentication_uuid));
        expect(out.messages.filter(({ to, authentication_uuid }) => to === phone_number && !ids.has(authentication_uuid))).toEqual([]);
        expect(history.map(({ created_at }) => created_at)).toEqual(
          history
            .map(({ created_at }) => created_at)
            .sort()
            .reverse(),
        );
      }
      await verifier.close();
    }
  });

  it("each callback is posted once to a receiver that accepts it, whatever requests are rejected in the meantime (docs/contract.md#callback-answers)", async () => {
    const again: string[] = [];
    for (let seed = 1; seed <= 8; seed++) {
      const { one, hooked } = await traffic(seed, 150);
      const ids = hooked.posted.map(({ id }) => id);
      again.push(...new Set(ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `seed ${seed}: ${id}`)));
      await one.verifier.close();
    }
    expect(again).toEqual([]);
  });
});

describe("a rejected start after a verification with callbacks has ended", () => {
  const range = { spam: { ...noSpamRules, range: { mode: "enforce" as const } } };
  const blockers: readonly { readonly by: string; readonly options: HouseOptions; readonly fill: readonly string[] }[] = [
    { by: "the cap of the number", options: {}, fill: Array.from({ length: 4 }, () => number) },
    { by: "the cap of the customer", options: { policy: { limits: { perCustomer: [{ limit: 1, window: 86_400 }] } } }, fill: [] },
    { by: "a spend ceiling", options: { out: sender(1), policy: { limits: { spend: [{ amount: 1, per: "day" }] } } }, fill: [] },
    { by: "a spam rule", options: { policy: range }, fill: Array.from({ length: 4 }, (_, i) => `+3361234000${i}`) },
  ];
  for (const { by, options, fill } of blockers) {
    it(`by ${by}: the event is posted once to a receiver that responds 204 (docs/contract.md#callback-answers)`, async () => {
      const one = alone(options);
      await one.verifier.verifications.start({ ...of, callback_url: callbackUrl });
      await one.verifier.verifications.cancel(of);
      for (const phone_number of fill) await one.verifier.createAuthentication({ customer_uuid: mine, phone_number });
      expect((await one.verifier.verifications.start(of)).status).toMatch(/rate_limited|spam_detected/);
      await flushed(one, 10);
      expect(one.hook.posted.map(({ event }) => `${event.data.sequence} ${event.data.status}`)).toEqual(["1 submitted"]);
    });
  }

  it("a rejected deliver after a delivery has ended: the event is posted once (docs/contract.md#callback-answers)", async () => {
    const one = alone();
    await one.verifier.deliver({ ...of, callback_url: callbackUrl, code: "482913", expires_in: 30 });
    one.clock.advance(31_000);
    for (let i = 0; i < 4; i++) await one.verifier.createAuthentication(of);
    expect((await one.verifier.deliver({ ...of, code: "482914" })).status).toBe("rate_limited");
    await flushed(one, 10);
    expect(one.hook.posted).toHaveLength(1);
  });

  it("a 410 ends the attempts (docs/contract.md#callback-answers)", async () => {
    const one = alone();
    one.hook.answer = async () => ({ status: 410 });
    await one.verifier.verifications.start({ ...of, callback_url: callbackUrl });
    await one.verifier.verifications.cancel(of);
    for (let i = 0; i < 4; i++) await one.verifier.createAuthentication(of);
    await one.verifier.verifications.start(of);
    await flushed(one, 10);
    expect(one.hook.posted).toHaveLength(1);
  });

  it("a failing receiver gets ten attempts, then the event is listed as given up (docs/contract.md#callback-ladder)", async () => {
    const one = alone();
    one.hook.answer = async () => ({ status: 500 });
    await one.verifier.verifications.start({ ...of, callback_url: callbackUrl });
    await one.verifier.verifications.cancel(of);
    for (let i = 0; i < 4; i++) await one.verifier.createAuthentication(of);
    await one.verifier.verifications.start(of);
    await flushed(one, 5 * 24 * 60);
    expect({ posts: one.hook.posted.length, dead: (await one.verifier.deadLetters()).length }).toEqual({ posts: 10, dead: 1 });
  });
});

it("a verification of a wire is in the wire's scope only (docs/contract.md#slot)", async () => {
  const one = alone();
  await one.twilio("POST", "/Verifications", { To: number, Channel: "sms" });
  await one.prelude("", { target: target(number) });
  const at = async (scope: string) => (await one.verifier.verifications.get(of, { scope }))?.authentication_uuid;
  const ids = one.out.messages.map(({ authentication_uuid }) => authentication_uuid);
  expect(await Promise.all(["twilio-verify", "prelude-v2", "default"].map(at))).toEqual([...ids, undefined]);
});

describe("limits that apply together", () => {
  it("retry_after is the time until every full cap has room, in each API (docs/contract.md#facts)", async () => {
    const one = alone();
    const { verifier, clock } = one;
    for (let i = 0; i < 10; i++) {
      if (i === 5) clock.advance(600_000);
      await verifier.createAuthentication(of);
    }
    // Five within ten minutes, and ten within the day.
    const told = {
      create: (await verifier.createAuthentication(of)).retry_after,
      v1: Number((await one.v1("authentication", { phone_number: number })).headers["x-phoneproof-retry-after"]),
      start: (await verifier.verifications.start(of)).retry_after,
      deliver: (await verifier.deliver({ ...of, code: "482913" })).retry_after,
      twilio: Number(/(\d+) seconds/.exec((await one.twilio("POST", "/Verifications", { To: number, Channel: "sms" })).json.details?.reason)?.[1]),
    };
    const room = 86_400 - 600;
    expect(told).toEqual({ create: room, v1: room, start: room, deliver: room, twilio: room });
  });

  it("retry_after covers spend ceilings of both the hour and the day (docs/contract.md#facts)", async () => {
    const spend = [
      { amount: 2, per: "hour" as const },
      { amount: 4, per: "day" as const },
    ];
    const { verifier, clock } = alone({ out: sender(1), policy: { limits: { spend } } });
    const create = (i: number) => verifier.createAuthentication({ customer_uuid: mine, phone_number: `+3361234567${i}` });
    for (let i = 0; i < 4; i++) {
      if (i === 2) clock.advance(2 * 3_600_000);
      expect((await create(i)).status).toBe("pending");
    }
    const { status, retry_after = 0 } = await create(4);
    expect(status).toBe("rate_limited");
    expect(retry_after).toBeGreaterThan(20 * 3_600);
    clock.advance(retry_after * 1_000);
    expect((await create(5)).status).toBe("pending");
  });

  /** Fifty wrong codes, and another verification a day later, when messages are sent again but guesses still count. */
  async function guessed() {
    const one = alone();
    for (let i = 0; i < 10; i++) {
      if (i === 5) one.clock.advance(600_000);
      const { authentication_uuid } = await one.verifier.createAuthentication(of);
      for (let wrong = 0; wrong < 5; wrong++) await one.verifier.check({ customer_uuid: mine, authentication_uuid, check_code: "wrong" });
    }
    one.clock.advance(day - 1_000);
    const { authentication_uuid, status } = await one.verifier.createAuthentication(of);
    expect(status).toBe("pending");
    return { ...one, id: { customer_uuid: mine, authentication_uuid }, code: one.out.messages.at(-1)?.code as string };
  }

  it("a check that is rate_limited because the number's guesses are used up returns remaining_checks 0 (docs/install.md#the-calls)", async () => {
    const { verifier, v1, id, code } = await guessed();
    expect(await verifier.check({ ...id, check_code: code })).toMatchObject({ status: "rate_limited", remaining_checks: 0 });
    const reply = await v1("check", { authentication_uuid: id.authentication_uuid, check_code: code });
    expect([reply.json.status, reply.headers["x-phoneproof-remaining-checks"]]).toEqual(["rate_limited", "0"]);
  });

  it("explain shows the operator why a right code is rate_limited (docs/contract.md#explain)", async () => {
    const { verifier, clock, id, code } = await guessed();
    expect((await verifier.check({ ...id, check_code: code })).status).toBe("rate_limited");
    const shown = { wrong_codes: 0, left: { checks: 0 }, decisions: [{ rule: "guesses", mode: "enforce", value: 50, threshold: 50 }] };
    expect(await verifier.explain(id)).toMatchObject(shown);
    const history = await verifier.history(of);
    expect(history.filter(({ decisions }) => decisions.length > 0)).toMatchObject([shown]);
    expect(reportOf(number, history, [], clock.now()).authentications[0]?.sentences).toEqual([
      "No code is accepted: a limit was reached.",
      expect.stringMatching(/^Message 1 /),
      expect.stringMatching(/^Blocked by the rule guesses\. .* It counted 50; the threshold is 50\.$/),
      expect.stringContaining("phoneproof unlock"),
      "Left: 0 tries to enter a code, 4 more messages, 10 minutes.",
    ]);
    expect(await verifier.unlock(of)).toMatchObject({ unlocked: true });
    expect(await verifier.explain(id)).toMatchObject({ left: { checks: 5 }, decisions: [] });
    expect((await verifier.check({ ...id, check_code: code })).status).toBe("valid");
  });

  it("an erasure does not count messages again that no cap counts any longer (docs/contract.md#erase)", async () => {
    const one = alone();
    for (let i = 0; i < 5; i++) await one.verifier.createAuthentication(of);
    one.clock.advance(day + 60_000);
    await one.verifier.erase(of);
    expect((await one.verifier.createAuthentication(of)).status).toBe("pending");
  });
});

describe("options that change with a restart", () => {
  it("if the policy allows more checks than before, a verification with used-up checks stays rate_limited (docs/contract.md#check-order)", async () => {
    const clock = fixedClock(noon);
    const store = memoryStore({ name: randomUUID(), now: clock.now });
    const before = house(store, { clock, policy: { checks: 2 } });
    const { authentication_uuid } = await before.verifier.createAuthentication(of);
    const id = { customer_uuid: mine, authentication_uuid };
    for (let i = 0; i < 2; i++) await before.verifier.check({ ...id, check_code: "wrong" });
    expect((await before.verifier.check({ ...id, check_code: "wrong" })).status).toBe("rate_limited");
    const { verifier } = house(store, { clock, policy: { checks: 5 } });
    onTestFinished(async () => {
      await before.verifier.close();
      await verifier.close();
    });
    const usedUp = { status: "rate_limited", remaining_checks: 0 };
    expect(await verifier.check({ ...id, check_code: before.out.messages.at(-1)?.code as string })).toMatchObject(usedUp);
    expect(await verifier.verifications.get(id)).toMatchObject({ status: "used_up", remaining_checks: 0 });
    expect((await verifier.explain(id)).left).toMatchObject({ checks: 0, retries: 0 });
    clock.advance(30_000);
    expect(await verifier.retry(id)).toMatchObject({ ...usedUp, remaining_retry: 0 });
  });

  it("a used-up verification by number stays used up too, until a start begins a new one (docs/contract.md#checks)", async () => {
    const clock = fixedClock(noon);
    const store = memoryStore({ name: randomUUID(), now: clock.now });
    const before = house(store, { clock, policy: { checks: 2 } });
    const first = await before.verifier.verifications.start(of);
    for (let i = 0; i < 2; i++) await before.verifier.verifications.check({ ...of, check_code: "wrong" });
    const { verifier, out } = house(store, { clock, policy: { checks: 5 } });
    onTestFinished(async () => {
      await before.verifier.close();
      await verifier.close();
    });
    expect(await verifier.verifications.check({ ...of, check_code: "wrong" })).toMatchObject({ status: "rate_limited", remaining_checks: 0 });
    expect(await verifier.verifications.get(of)).toMatchObject({ status: "used_up" });
    clock.advance(30_000);
    expect(await verifier.verifications.start(of, { usedUp: "wait" })).toMatchObject({ status: "rate_limited", is_open: false });
    const next = await verifier.verifications.start(of);
    expect(next).toMatchObject({ status: "pending", attempt: 1, remaining_checks: 5 });
    expect(next.authentication_uuid).not.toBe(first.authentication_uuid);
    expect((await verifier.verifications.check({ ...of, check_code: out.messages.at(-1)?.code as string })).status).toBe("valid");
  });
});

describe("credit and trust", () => {
  const at = (i: number) => `+3361234${String(i).padStart(4, "0")}`;
  const newest = ({ out }: House, to: string) => out.messages.filter((message) => message.to === to).at(-1) ?? { code: "none", authentication_uuid: "none" };
  const send: Readonly<Record<string, (one: House, to: string) => Promise<string>>> = {
    create: async (one, phone_number) => (await one.verifier.createAuthentication({ customer_uuid: mine, phone_number })).status,
    v1: async (one, phone_number) => (await one.v1("authentication", { phone_number })).json.status,
    start: async (one, phone_number) => (await one.verifier.verifications.start({ customer_uuid: mine, phone_number })).status,
    twilio: async (one, phone_number) => brief(await one.twilio("POST", "/Verifications", { To: phone_number, Channel: "sms" })),
    prelude: async (one, phone_number) => (await one.prelude("", { target: target(phone_number) })).json.status,
    deliver: async (one, phone_number) =>
      (await one.verifier.deliver({ customer_uuid: mine, phone_number, code: String(100_000 + one.out.messages.length) })).status,
  };
  const prove: Readonly<Record<string, (one: House, to: string) => Promise<unknown>>> = {
    create: (one, to) =>
      one.verifier.check({ customer_uuid: mine, authentication_uuid: newest(one, to).authentication_uuid, check_code: newest(one, to).code }),
    v1: (one, to) => one.v1("check", { authentication_uuid: newest(one, to).authentication_uuid, check_code: newest(one, to).code }),
    start: (one, to) => one.verifier.verifications.check({ customer_uuid: mine, phone_number: to, check_code: newest(one, to).code }),
    twilio: (one, to) => one.twilio("POST", "/VerificationCheck", { To: to, Code: newest(one, to).code }),
    prelude: (one, to) => one.prelude("/check", { target: target(to), code: newest(one, to).code }),
    deliver: (one, to) => one.verifier.confirm({ customer_uuid: mine, phone_number: to }),
  };
  const isOut = (status: string) => /pending|sent|success/.test(status);

  it.each(Object.keys(send))("a user verified by %s earns two more messages, and trust, in every API (docs/contract.md#balance)", async (by) => {
    const names = Object.keys(send);
    const one = alone({ policy: { spam: { ...noSpamRules, range: { mode: "enforce" } } } });
    await send[by]?.(one, at(0));
    await prove[by]?.(one, at(0));
    let count = 0;
    for (let i = 1; i <= 24; i++) if (isOut((await send[names[i % names.length] as string]?.(one, at(i))) as string)) count++;
    expect(count).toBe(7);
    for (const name of names) expect(isOut((await send[name]?.(one, at(50))) as string), name).toBe(false);
    // Trusted, while it has fewer than three open.
    const trusted: boolean[] = [];
    for (const name of [...names.filter((other) => other !== by), by]) trusted.push(isOut((await send[name]?.(one, at(0))) as string));
    expect(trusted).toEqual([true, true, true, false, false, false]);
  });
});
