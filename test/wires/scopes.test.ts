import { expect, it } from "vitest";
import { numberOf } from "../support/verifier.js";
import { serve as servePrelude } from "./prelude-v2/service.js";
import { serve as serveTwilio } from "./twilio-verify/service.js";

it("each wire has its own verification of a number, apart from those of direct calls (docs/contract.md#slot)", async () => {
  const twilio = await serveTwilio();
  const { store, clock, customer: customer_uuid, key } = twilio;
  const prelude = await servePrelude({ verifier: { store, clock, customers: [{ customer_uuid, keys: [key] }] } });
  const post = (path: string, body: object) => prelude.raw("POST", path, { target: prelude.target(), ...body }, { authorization: `Bearer ${key}` });
  const checkTwilio = (Code: string) => twilio.raw("POST", "/VerificationCheck", { To: numberOf(1), Code });

  expect(await twilio.raw("POST", "/Verifications", { To: numberOf(1), Channel: "sms" })).toMatchObject({ status: 201 });
  const code = twilio.box.code();
  expect((await post("/v2/verification/check", { code })).json).toMatchObject({ status: "expired_or_not_found" });
  const request = { customer_uuid, phone_number: numberOf(1) };
  expect(await twilio.verifier.verifications.check({ ...request, check_code: code })).toEqual({ status: "not_found" });
  expect(await twilio.verifier.verifications.start(request)).toMatchObject({ attempt: 1 });
  expect((await post("/v2/verification", {})).json).toMatchObject({ status: "success" });
  expect((await post("/v2/verification/check", { code: prelude.box.code() })).json).toMatchObject({ status: "success" });
  expect(await checkTwilio(code)).toMatchObject({ json: { status: "approved" } });
});
