import { describe, expect, it } from "vitest";
import { numberOf } from "../../support/verifier.js";
import type { Mount } from "../listen.js";
import { errorOf, hexOf, serve } from "./service.js";

const to = numberOf(1);
const sms = { to, channel: "sms" };

/** Every case of the SDK against one way of mounting the wire. */
export function sdkSuite(name: string, mount: Mount): void {
  describe(`over ${name}`, () => {
    const start = (options?: Parameters<typeof serve>[0]) => serve({ ...options, mount });

    describe("the client creates", () => {
      it("a pending verification, with dates, SIDs and one attempt", async () => {
        const { verify, box, sids, clock, url } = await start({ wire: { baseUrl: "https://otp.example.com/api" } });
        const created = await verify().verifications.create({
          ...sms,
          locale: "fr",
          customFriendlyName: "My app",
          deviceIp: "192.0.2.7",
          riskCheck: "disable",
          tags: '{"a":"b"}',
          rateLimits: { end_user_ip_address: "192.0.2.7" },
          templateSid: "HJ0",
        });
        expect(url).not.toContain("example.com");
        expect(created.toJSON()).toEqual({
          sid: expect.stringMatching(/^VE[0-9a-f]{32}$/),
          serviceSid: sids.service,
          accountSid: sids.account,
          to,
          channel: "sms",
          status: "pending",
          valid: false,
          lookup: {},
          amount: null,
          payee: null,
          sendCodeAttempts: [{ time: new Date(clock.now()).toISOString(), channel: "sms", attempt_sid: expect.stringMatching(/^VL[0-9a-f]{32}$/) }],
          dateCreated: new Date(clock.now()),
          dateUpdated: new Date(clock.now()),
          sna: null,
          url: `https://otp.example.com/api/v2/Services/${sids.service}/Verifications/${created.sid}`,
        });
        expect(box.messages).toMatchObject([{ to, code: expect.stringMatching(/^\d{6}$/) }]);
      });

      it("again: the same SID and dateCreated, one more attempt; the previous code stays valid", async () => {
        const { verify, box, clock } = await start();
        const first = await verify().verifications.create(sms);
        clock.advance(30_000);
        const second = await verify().verifications.create(sms);
        expect([second.sid, second.dateCreated, second.status]).toEqual([first.sid, first.dateCreated, "pending"]);
        expect(second.dateUpdated).toEqual(new Date(clock.now()));
        expect(second.sendCodeAttempts).toEqual([...first.sendCodeAttempts, expect.objectContaining({ time: new Date(clock.now()).toISOString() })]);
        expect(new Set(second.sendCodeAttempts.map((one: { attempt_sid?: string }) => one.attempt_sid)).size).toBe(2);
        expect(box.code(0)).not.toBe(box.code(1));
        expect((await verify().verificationChecks.create({ to, code: box.code(0) })).status).toBe("approved");
      });

      it("60203 after five messages; the attempts are the first and the last three, and the last code is still valid", async () => {
        const { verify, box, clock } = await start();
        const first = await verify().verifications.create(sms);
        const lists = [first.sendCodeAttempts];
        for (let message = 2; message <= 5; message++) {
          clock.advance(120_000);
          lists.push((await verify().verifications.create(sms)).sendCodeAttempts);
        }
        expect(lists.map((list) => list.length)).toEqual([1, 2, 3, 4, 4]);
        expect(lists[4]?.slice(0, 3)).toEqual([lists[3]?.[0], lists[3]?.[2], lists[3]?.[3]]);
        clock.advance(110_000);
        expect(await errorOf(verify().verifications.create(sms))).toMatchObject({ status: 429, code: 60203, message: "Max send attempts reached" });
        expect((await verify().verificationChecks.create({ to, code: box.code() })).valid).toBe(true);
      });

      it("a verification whose message every carrier rejects is pending, and the next create starts a new one", async () => {
        const { verify, box } = await start();
        box.answer = async () => ({ outcome: "rejected", error: "no" });
        const first = await verify().verifications.create(sms);
        expect([first.status, first.sendCodeAttempts.length]).toEqual(["pending", 1]);
        expect(await verify().verificationChecks.create({ to, code: "123456" })).toMatchObject({ status: "pending", valid: false, sid: first.sid });
        for (const name of [first.sid, to]) expect(await verify().verifications(name).fetch()).toMatchObject({ status: "pending", sid: first.sid, to });
        box.answer = async () => ({ outcome: "accepted" });
        expect((await verify().verifications.create(sms)).sid).not.toBe(first.sid);
      });
    });

    describe("the client checks", () => {
      it("pending for a wrong code, approved once, then 404 20404", async () => {
        const { verify, box, sids, wrong, clock } = await start();
        const missing = { status: 404, code: 20404, message: `The requested resource /Services/${sids.service}/VerificationCheck was not found` };
        expect(await errorOf(verify().verificationChecks.create({ to, code: "123456" }))).toMatchObject(missing);
        const { sid, dateCreated } = await verify().verifications.create(sms);
        clock.advance(5_000);
        expect(await verify().verificationChecks.create({ to, code: wrong() })).toMatchObject({ sid, status: "pending", valid: false });
        const code = `${box.code().slice(0, 3)}-${box.code().slice(3)} `;
        expect((await verify().verificationChecks.create({ to, code })).toJSON()).toEqual({
          sid,
          serviceSid: sids.service,
          accountSid: sids.account,
          to,
          channel: "sms",
          status: "approved",
          valid: true,
          amount: null,
          payee: null,
          dateCreated,
          dateUpdated: new Date(clock.now()),
          snaAttemptsErrorCodes: [],
        });
        expect(await errorOf(verify().verificationChecks.create({ to, code }))).toMatchObject(missing);
        await verify().verifications.create({ to: numberOf(2), channel: "sms" });
        clock.advance(600_000);
        expect(await errorOf(verify().verificationChecks.create({ to: numberOf(2), code: box.code() }))).toMatchObject(missing);
      });

      it("by SID, and by SID and number if they belong together", async () => {
        const { verify, box, wrong } = await start();
        const { sid } = await verify().verifications.create(sms);
        expect(await verify().verificationChecks.create({ verificationSid: sid, code: wrong() })).toMatchObject({ status: "pending", to });
        const { sid: other } = await verify().verifications.create({ to: numberOf(2), channel: "sms" });
        for (const verificationSid of [other, `VE${"0".repeat(32)}`, "VE1", "+33612000001"])
          expect(await errorOf(verify().verificationChecks.create({ verificationSid, to, code: box.code(0) }))).toMatchObject({ status: 404, code: 20404 });
        expect(await verify().verificationChecks.create({ verificationSid: sid, to, code: box.code(0) })).toMatchObject({ status: "approved", to, sid });
        expect(await verify().verificationChecks.create({ verificationSid: other, code: box.code(1) })).toMatchObject({ status: "approved", to: numberOf(2) });
      });

      it("60202 from the sixth code on, even for the right one; a create then gives 60203, and works after cancellation", async () => {
        const { verify, box, wrong, clock } = await start();
        const { sid } = await verify().verifications.create(sms);
        for (let tries = 0; tries < 5; tries++) expect((await verify().verificationChecks.create({ to, code: wrong() })).status).toBe("pending");
        for (const code of [wrong(), box.code()])
          expect(await errorOf(verify().verificationChecks.create({ to, code }))).toMatchObject({
            status: 429,
            code: 60202,
            message: "Max check attempts reached",
          });
        expect((await verify().verifications(sid).fetch()).status).toBe("max_attempts_reached");
        clock.advance(30_000);
        expect(await errorOf(verify().verifications.create(sms))).toMatchObject({ status: 429, code: 60203 });
        expect((await verify().verifications(sid).update({ status: "canceled" })).status).toBe("canceled");
        expect((await verify().verifications.create(sms)).sid).not.toBe(sid);
      });

      it("a hundred right codes at once: one is approved", async () => {
        const { raw, verify, box } = await start();
        await verify().verifications.create(sms);
        const statuses = await Promise.all(
          Array.from({ length: 100 }, async () => (await raw("POST", "/VerificationCheck", { To: to, Code: box.code() })).status),
        );
        expect(statuses.filter((status) => status === 200)).toHaveLength(1);
        expect(statuses.filter((status) => status === 404)).toHaveLength(99);
      });
    });

    describe("the client fetches and cancels", () => {
      it("by SID and by number, with a raw + in the path", async () => {
        const { verify, seen, clock, box, sids } = await start();
        const created = await verify().verifications.create(sms);
        clock.advance(30_000);
        const again = await verify().verifications.create(sms);
        for (const name of [created.sid, to]) expect((await verify().verifications(name).fetch()).toJSON()).toEqual(again.toJSON());
        expect(seen.at(-1)).toBe(`GET /v2/Services/${sids.service}/Verifications/${to}`);
        await verify().verificationChecks.create({ to, code: box.code() });
        for (const name of [created.sid, to, `VE${hexOf(crypto.randomUUID())}`, "VE", "+33", "+99912345"])
          expect(await errorOf(verify().verifications(name).fetch())).toMatchObject({
            status: 404,
            code: 20404,
            message: `The requested resource /Services/${sids.service}/Verifications/${name} was not found`,
          });
      });

      it.each(["SID", "number"])("canceled by %s: its codes become invalid, it can be fetched by SID, and the next create starts a new one", async (by) => {
        const { verify, box, clock } = await start();
        const { sid } = await verify().verifications.create(sms);
        clock.advance(5_000);
        const name = by === "SID" ? sid : to;
        expect(await verify().verifications(name).update({ status: "canceled" })).toMatchObject({
          sid,
          status: "canceled",
          valid: false,
          to,
          dateUpdated: new Date(clock.now()),
        });
        expect(await errorOf(verify().verificationChecks.create({ to, code: box.code() }))).toMatchObject({ status: 404 });
        expect(await verify().verifications(sid).fetch()).toMatchObject({ sid, status: "canceled", to: "+33612****01" });
        expect(await errorOf(verify().verifications(to).fetch())).toMatchObject({ status: 404 });
        expect(await errorOf(verify().verifications(name).update({ status: "canceled" }))).toMatchObject({ status: 404, code: 20404 });
        expect((await verify().verifications.create(sms)).sid).not.toBe(sid);
      });

      it("an update to approved gives 60200 and approves nothing", async () => {
        const { verify, verifier, customer, box } = await start();
        const { sid } = await verify().verifications.create(sms);
        expect(await errorOf(verify().verifications(sid).update({ status: "approved" }))).toMatchObject({
          status: 400,
          code: 60200,
          message: "Invalid parameter: Status",
          details: { reason: expect.stringContaining("only a right code") },
        });
        expect((await verifier.verifications.get({ customer_uuid: customer, phone_number: to }, { scope: "twilio-verify" }))?.status).toBe("open");
        expect((await verify().verificationChecks.create({ to, code: box.code() })).status).toBe("approved");
      });
    });

    describe("the client's services", () => {
      it("there is one service, and lists and pages end", async () => {
        const { client, sids, seen } = await start({ wire: { friendlyName: "My app", codeLength: 8 } });
        const { services } = client().verify.v2;
        const list = await services.list();
        expect(list).toMatchObject([{ sid: sids.service, accountSid: sids.account, friendlyName: "My app", codeLength: 8, customCodeEnabled: false }]);
        expect(seen).toEqual(["GET /v2/Services"]);
        expect(await services.list({ limit: 20, pageSize: 10 })).toHaveLength(1);
        const page = await services.page({ pageNumber: 1, pageSize: 1 });
        expect([page.instances, page.nextPageUrl]).toEqual([[], undefined]);
        const each: string[] = [];
        await new Promise<void>((resolve) => services.each({ done: () => resolve() }, ({ sid }) => void each.push(sid)));
        expect(each).toEqual([sids.service]);
        expect((await services(sids.service).fetch()).toJSON()).toEqual(list[0]?.toJSON());
      });

      it("create returns the existing one, update accepts only its current values, and remove gives 405 20004", async () => {
        const { client, sids } = await start();
        const { services } = client().verify.v2;
        expect((await services.create({ friendlyName: "My first service", codeLength: 4 })).sid).toBe(sids.service);
        expect(await errorOf(services.create({ friendlyName: "x".repeat(31) }))).toMatchObject({
          status: 400,
          code: 60200,
          message: "Invalid parameter: FriendlyName",
        });
        const same = { friendlyName: "phoneproof", codeLength: 6, lookupEnabled: false, skipSmsToLandlines: true, "push.includeDate": false };
        expect((await services(sids.service).update(same)).sid).toBe(sids.service);
        const changes = [
          [{ codeLength: 4 }, "CodeLength", "codeLength of twilioVerify"],
          [{ lookupEnabled: true }, "LookupEnabled", "lookupBeforeSend"],
          [{ psd2Enabled: true }, "Psd2Enabled", "there is no such setting"],
          [{ "totp.issuer": "me" }, "Totp.Issuer", "there is no such setting"],
        ] as const;
        for (const [change, field, option] of changes)
          expect(await errorOf(services(sids.service).update(change))).toMatchObject({
            status: 400,
            code: 60200,
            message: `Invalid parameter: ${field}`,
            details: { reason: expect.stringContaining(option) },
          });
        expect(await errorOf(services(sids.service).remove())).toMatchObject({ status: 405, code: 20004, message: "Method not allowed" });
      });

      it("another service and resources that are not supported give 404 20404 with the path", async () => {
        const { client, verify, sids } = await start();
        const unknown = `VA${hexOf(crypto.randomUUID())}`;
        const other = client().verify.v2.services(unknown);
        const foreign: [call: Promise<unknown>, path: string][] = [
          [other.fetch(), ""],
          [other.verifications.create(sms), "/Verifications"],
          [other.verificationChecks.create({ to, code: "123456" }), "/VerificationCheck"],
        ];
        for (const [call, path] of foreign)
          expect(await errorOf(call)).toMatchObject({
            status: 404,
            code: 20404,
            message: `The requested resource /Services/${unknown}${path} was not found`,
            details: { reason: expect.stringContaining(sids.service) },
          });
        const { v2 } = client().verify;
        const absent: [call: Promise<unknown>, path: string][] = [
          [verify().rateLimits.list(), `/Services/${sids.service}/RateLimits`],
          [verify().entities("someone").newFactors.create({ friendlyName: "x", factorType: "totp" }), `/Services/${sids.service}/Entities/someone/Factors`],
          [verify().webhooks.list(), `/Services/${sids.service}/Webhooks`],
          [v2.verificationAttempts.list(), "/Attempts"],
          [v2.verificationAttemptsSummary().fetch(), "/Attempts/Summary"],
          [v2.templates.list(), "/Templates"],
          [v2.safelist("+33612345678").fetch(), "/SafeList/Numbers/+33612345678"],
          [v2.forms("form-push").fetch(), "/Forms/form-push"],
        ];
        for (const [call, path] of absent)
          expect(await errorOf(call)).toMatchObject({ status: 404, code: 20404, message: `The requested resource ${path} was not found` });
      });
    });

    describe("the client's errors", () => {
      it("a RestException with status, code, message and moreInfo", async () => {
        const { verify } = await start();
        expect(await errorOf(verify().verifications.create({ to: "+3361", channel: "sms" }))).toEqual({
          name: "RestException",
          status: 400,
          code: 60200,
          message: "Invalid parameter `To`: +3361",
          moreInfo: "https://www.twilio.com/docs/errors/60200",
          details: { reason: expect.stringContaining("valid number") },
        });
      });

      it("401 20003 for a wrong key, a key of another account, and none", async () => {
        const key = `pp_${crypto.randomUUID()}${crypto.randomUUID()}`;
        const [mine, other] = [crypto.randomUUID(), crypto.randomUUID()];
        const { clientOf, raw, box } = await start({
          verifier: {
            customers: [
              { customer_uuid: mine, keys: [`${key}1`] },
              { customer_uuid: other, keys: [`${key}2`] },
            ],
          },
        });
        const create = (user: string, password: string) =>
          clientOf(user, password)
            .verify.v2.services(`VA${hexOf(mine)}`)
            .verifications.create(sms);
        for (const [user, password] of [
          [`AC${hexOf(mine)}`, `${key}2`],
          [`AC${hexOf(other)}`, `${key}1`],
          [`AC${hexOf(mine)}`, "none"],
          ["AC1", `${key}1`],
        ] as const)
          expect(await errorOf(create(user, password))).toMatchObject({ status: 401, code: 20003, message: "Authenticate" });
        for (const authorization of ["", "Basic", "Basic !", `Basic ${btoa("no colon")}`, `Bearer ${key}1`, `Basic ${btoa(`:${key}1`)}`])
          expect(await raw("GET", "/v2/Services", undefined, { authorization })).toMatchObject({ status: 401, json: { code: 20003 } });
        expect(box.messages).toEqual([]);
        expect((await create(`AC${hexOf(mine)}`, `${key}1`)).status).toBe("pending");
      });

      it("the other rejections", async () => {
        const { verify } = await start({ verifier: { countries: ["FR"], blockedNumbers: [numberOf(9)], lists: { block: { cidrs: ["192.0.2.9/32"] } } } });
        const create = (number: string, more = {}) => errorOf(verify().verifications.create({ to: number, channel: "sms", ...more }));
        const geo = "The destination phone number has been blocked by Verify Geo-Permissions. GB is blocked for sms channel for all services";
        const fraud = "The destination phone number has been temporarily blocked by Twilio due to fraudulent activities";
        expect(await create("+447400123456")).toMatchObject({ status: 403, code: 60605, message: geo });
        expect(await create("+33142685300")).toMatchObject({ status: 403, code: 60205, message: "SMS is not supported by landline phone number" });
        expect(await create(numberOf(9))).toMatchObject({ status: 403, code: 60410, message: fraud });
        expect(await create(to, { deviceIp: "192.0.2.9" })).toMatchObject({ status: 403, code: 60410, message: fraud });
        for (const channel of ["call", "email", "whatsapp", "sna", "auto"])
          expect(await create(to, { channel })).toMatchObject({ status: 400, code: 60200, message: "Invalid parameter: Channel" });
        expect(await create(to, { amount: "€39.99", payee: "Acme" })).toMatchObject({ status: 400, code: 60200, message: "Invalid parameter: Amount" });
      });

      it("autoRetry repeats 60212 four times, and the verification does not change", async () => {
        const { client, sids, seen, box, verifier, customer } = await start();
        const verifications = client({ autoRetry: true }).verify.v2.services(sids.service).verifications;
        await verifications.create(sms);
        const stored = () => verifier.verifications.get({ customer_uuid: customer, phone_number: to }, { scope: "twilio-verify" });
        const before = await stored();
        expect(await errorOf(verifications.create(sms))).toMatchObject({
          status: 429,
          code: 60212,
          message: "Too many concurrent requests for phone number",
          details: { reason: expect.stringContaining(String(before?.next_retry_at)) },
        });
        expect(seen).toHaveLength(5);
        expect(await stored()).toEqual(before);
        expect(box.messages).toHaveLength(1);
      });
    });

    describe("the client's settings", () => {
      it("a prefix in the base address", async () => {
        const { client, verify, seen, sids } = await start({ basePath: "/otp/verify" });
        expect((await verify().verifications.create(sms)).status).toBe("pending");
        expect(await client().verify.v2.services.list()).toHaveLength(1);
        expect(seen[0]).toBe(`POST /otp/verify/v2/Services/${sids.service}/Verifications`);
      });

      it("an API key SID as user, with the key as secret", async () => {
        const { clientOf, key, sids } = await start();
        const client = clientOf(`SK${"a".repeat(32)}`, key, { accountSid: sids.account });
        expect((await client.verify.v2.services(sids.service).verifications.create(sms)).accountSid).toBe(sids.account);
      });

      it("a key without its underscore, as twilio-go requires", async () => {
        const { clientOf, key, sids } = await start();
        const bare = key.replace("_", "");
        expect([sids.account, bare].every((one) => /^[a-zA-Z0-9]*$/.test(one))).toBe(true);
        expect((await clientOf(sids.account, bare).verify.v2.services(sids.service).verifications.create(sms)).status).toBe("pending");
      });
    });
  });
}
