import { describe, expect, it } from "vitest";
import { numberOf } from "../../support/verifier.js";
import { pythonClient, pythonWithTwilio } from "./python.js";
import { serve } from "./service.js";

const python = pythonWithTwilio("Twilio Verify from Python");

async function start(options?: Parameters<typeof serve>[0]) {
  const service = await serve(options);
  const { url, sids, key } = service;
  const client = pythonClient(python as string, { url, user: sids.account, password: key, service: sids.service });
  const returned = async (...call: Parameters<typeof client.call>) => {
    const { returned, raised } = await client.call(...call);
    if (raised !== undefined) throw new Error(`raised ${raised.status} ${raised.msg}`);
    return returned as Record<string, unknown>;
  };
  return { ...service, client, returned };
}

const to = numberOf(1);
const sms = { to, channel: "sms" };

describe.runIf(python !== undefined)("python3-twilio", () => {
  it("creates, and reads the dates as datetimes", async () => {
    const { returned, sids, clock } = await start();
    const created = await returned("create", sms);
    const datetime = { datetime: `${new Date(clock.now()).toISOString().slice(0, 19)}+00:00` };
    expect(created).toMatchObject({
      sid: expect.stringMatching(/^VE[0-9a-f]{32}$/),
      service_sid: sids.service,
      account_sid: sids.account,
      to,
      channel: "sms",
      status: "pending",
      valid: false,
      date_created: datetime,
      date_updated: datetime,
      send_code_attempts: [{ channel: "sms", attempt_sid: expect.stringMatching(/^VL/) }],
    });
    clock.advance(30_000);
    expect(await returned("create", sms)).toMatchObject({ sid: created.sid, date_created: datetime });
  });

  it("checks: pending, approved, 404, and 60202 from the sixth check on", async () => {
    const { returned, client, box, wrong } = await start();
    const { sid } = await returned("create", sms);
    expect(await returned("check", { to, code: wrong() })).toMatchObject({ sid, status: "pending", valid: false });
    expect(await returned("check", { verification_sid: sid as string, code: box.code() })).toMatchObject({ sid, status: "approved", valid: true });
    expect(await client.call("check", { to, code: box.code() })).toMatchObject({ raised: { status: 404, code: 20404 } });
    await returned("create", { ...sms, to: numberOf(2) });
    for (let tries = 0; tries < 5; tries++) await returned("check", { to: numberOf(2), code: wrong() });
    expect(await client.call("check", { to: numberOf(2), code: box.code() })).toMatchObject({ raised: { status: 429, code: 60202 } });
  });

  it("fetches by SID and by number, cancels, lists services", async () => {
    const { returned, client, sids } = await start();
    const created = await returned("create", sms);
    for (const sid of [created.sid as string, to]) expect(await returned("fetch", { sid })).toEqual(created);
    expect(await returned("update", { sid: to, status: "canceled" })).toMatchObject({ sid: created.sid, status: "canceled" });
    expect(await client.call("fetch", { sid: to })).toMatchObject({ raised: { status: 404, code: 20404 } });
    expect(await returned("services")).toMatchObject([{ sid: sids.service, code_length: 6 }]);
    expect(await returned("service")).toMatchObject({ account_sid: sids.account, date_created: null });
  });

  it("raises TwilioRestException with status, code and message", async () => {
    const { client, sids, url, seen } = await start({ basePath: "/otp" });
    expect(await client.call("create", { to: "+3361", channel: "sms" })).toEqual({
      raised: {
        status: 400,
        code: 60200,
        msg: "Unable to create record: Invalid parameter `To`: +3361",
        uri: `/Services/${sids.service}/Verifications`,
      },
    });
    expect(seen).toEqual([`POST /otp/v2/Services/${sids.service}/Verifications`]);
    const stranger = pythonClient(python as string, { url, user: sids.account, password: "none", service: sids.service });
    expect(await stranger.call("create", sms)).toMatchObject({ raised: { status: 401, code: 20003 } });
  });
});
