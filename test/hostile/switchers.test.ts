/** Teams that switch from Twilio Verify and Prelude v2 with their clients unchanged, and offer several channels. */
import { expect, onTestFinished, test } from "vitest";
import { authenticationUuidOf } from "../../src/wires/twilio-verify/index.js";
import { rejection, switched } from "./switchers-kit.js";

async function team(options?: Parameters<typeof switched>[0]) {
  const made = await switched(options);
  onTestFinished(made.close);
  return made;
}

test("send_code_attempts keeps the channel of the first message, whatever follows it (docs/migrate/twilio-verify.md#what-differs)", async () => {
  const { twilio, service, pause } = await team();
  let verification = await twilio("call");
  const { to } = verification;
  for (let more = 0; more < 3; more++) {
    pause();
    verification = await twilio("sms");
  }
  const channels = (attempts: unknown) => (attempts as { channel: string }[]).map(({ channel }) => channel);
  expect(channels((await service.verifications(to).fetch()).sendCodeAttempts)).toEqual(["call", "sms", "sms", "sms"]);
});

test("a request for a message after a call is no second call (docs/contract.md#channel)", async () => {
  const { prelude, pause, sent } = await team();
  await prelude({ method: "voice" });
  pause();
  const answer = await prelude({ method: "message" }); // "text me instead"
  expect(sent.map(({ route }) => route)).toEqual(["call", "sms"]);
  expect(answer.method).toBe("message");
});

test("with autoChannel: sms, a request for auto after a call is no second call (docs/migrate/twilio-verify.md#what-maps-to-what)", async () => {
  const { twilio, pause, sent } = await team({ autoChannel: "sms" });
  await twilio("call");
  pause();
  await twilio("auto");
  expect(sent.map(({ route }) => route)).toEqual(["call", "sms"]);
});

for (const wire of ["twilio", "prelude"] as const) {
  test(`the error of a call beyond the three a day speaks of calls, as a message is still possible: ${wire} (docs/contract.md#retry-order)`, async () => {
    const made = await team();
    const call = () => (wire === "twilio" ? made.twilio("call") : made.prelude({ method: "voice" }));
    for (let calls = 0; calls < 3; calls++) {
      await call();
      made.pause();
    }
    const { details, message, status } = await rejection(call());
    expect(status).toBe(429);
    await (wire === "twilio" ? made.twilio("sms") : made.prelude({ preferred_channel: "sms" }));
    expect(made.sent.map(({ route }) => route)).toEqual(["call", "call", "call", "sms"]); // it was possible
    expect(details?.reason ?? message).toMatch(/\bcalls?\b/i);
  });
}

test("a call that its carrier rejected is shown as a call, not as an SMS (docs/contract.md#channel-shown)", async () => {
  const { twilio, verifier, customer, down } = await team();
  down.add("call");
  const { sid, channel } = await twilio("call");
  const explained = await verifier.explain({ customer_uuid: customer, authentication_uuid: authenticationUuidOf(sid) ?? sid });
  expect(explained?.sends.map((one) => [one.route, one.state, one.channel])).toEqual([["call", "rejected", "voice"]]);
  expect(channel).toBe("call");
});

test("the reason of a rejected channel lists channels that Channel accepts (docs/migrate/twilio-verify.md#what-maps-to-what)", async () => {
  const { twilio } = await team();
  const { details, code } = await rejection(twilio("whatsapp"));
  expect(code).toBe(60200);
  expect(details?.reason).not.toMatch(/\bvoice\b/); // Channel=voice is rejected: it is call
});

test("the reason of a rejected landline names the field of this API (docs/migrate/twilio-verify.md#what-maps-to-what)", async () => {
  const { twilio } = await team();
  const { details, code } = await rejection(twilio("sms", "+33140000000"));
  expect(code).toBe(60205);
  expect(details?.reason).not.toContain("phone_number"); // it is To
});
