import { expect, it } from "vitest";
import { setUp } from "../support/verifier.js";

const number = "+33612345678";

it.each([
  ["createAuthentication", { phone_number: number, deviceId: "a-device" }, "deviceId is not a field of a request: say device_id."],
  ["createAuthentication", { phone_number: number, ipAddress: "192.0.2.7" }, "ipAddress is not a field of a request: say ip."],
  ["createAuthentication", { phone: number }, "phone is not a field of a request: say phone_number."],
  ["createAuthentication", { phone_number: number, "Device-Type": "WEB" }, "Device-Type is not a field of a request: say device_type."],
  ["check", { authenticationUuid: "a", checkCode: "1" }, "authenticationUuid is not a field of a request: say authentication_uuid."],
  ["history", { phoneNumber: number }, "phoneNumber is not a field of a request: say phone_number."],
] as const)("%s with %j is rejected, and the error names the right field", async (call, request, message) => {
  const set = setUp();
  await expect(set.verifier[call]({ customer_uuid: set.customer, ...request } as never)).rejects.toMatchObject({ code: "bad_request", message });
  expect(set.box.messages).toEqual([]);
});

it.each([
  ["createAuthentication", { phone_number: number }],
  ["check", { authentication_uuid: "11111111-2222-3333-4444-555555555555", check_code: "1" }],
] as const)("%s with an unknown option is rejected, and the error names the right one", async (call, request) => {
  const set = setUp();
  const asked = set.verifier[call] as (request: object, options: object) => Promise<unknown>;
  await expect(asked({ customer_uuid: set.customer, ...request }, { idempotency_key: "k" })).rejects.toMatchObject({
    code: "bad_request",
    message: "idempotency_key is not an option of a call: use idempotencyKey.",
  });
  expect(set.box.messages).toEqual([]);
});

it.each([
  ["idempotencyKey", "createAuthentication(request, { idempotencyKey })"],
  ["idempotency_key", "createAuthentication(request, { idempotencyKey })"],
  ["scope", "verifications.start(request, { scope })"],
  ["usedUp", "verifications.start(request, { usedUp })"],
] as const)("an option among the fields, %s, is rejected, and the error shows where it belongs", async (name, where) => {
  const set = setUp();
  const request = { customer_uuid: set.customer, phone_number: number, [name]: "payment" };
  const message = `${name} is not a field of a request: it is an option, as in ${where}.`;
  for (const call of [set.verifier.createAuthentication, set.verifier.verifications.start])
    await expect(call(request)).rejects.toMatchObject({ code: "bad_request", message });
  expect(set.box.messages).toEqual([]);
});

it("an unknown field is ignored, as over HTTP, and so is a misspelling next to the right field", async () => {
  const set = setUp();
  const request = { customer_uuid: set.customer, phone_number: number, phoneNumber: "06", utm_source: "x", device_id: "d", deviceId: "e" };
  expect(await set.verifier.createAuthentication(request as never)).toMatchObject({ status: "pending" });
});
