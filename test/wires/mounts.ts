import Prelude from "@prelude.so/sdk";
import twilio from "twilio";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Host } from "../http/hosts.js";
import type { Service } from "../http/service.js";

let numbers = 0;
/** A number that no test has used. */
const nextNumber = () => `+3361200${String(numbers++).padStart(4, "0")}`;

/** What is mounted: `/v1` and both wires, with whatever is in front of them. */
export interface Mounted {
  readonly host: Host;
  readonly service: Service;
}

/** Both SDKs, unmodified, against one way of mounting both wires next to `/v1`. */
export function wiresSuite(name: string, start: () => Promise<Mounted>): void {
  describe(`${name}: the SDKs of both wires`, () => {
    let base: string;
    let service: Service;
    let mounted: Mounted;
    beforeAll(async () => {
      mounted = await start();
      service = mounted.service;
      base = `http://127.0.0.1:${mounted.host.port}${mounted.host.prefix}`;
    });
    afterAll(() => mounted?.host.close());

    const codeTo = async (number: string) => (await service.sent()).findLast(({ to }) => to === number)?.code ?? "no message";
    const preludeOf = (apiToken: string) => new Prelude({ apiToken, baseURL: base, maxRetries: 0 });
    const twilioOf = (key: string) => {
      const digits = service.customer.customer_uuid.replaceAll("-", "");
      const client = twilio(`AC${digits}`, key);
      client.verify.baseUrl = base;
      return client.verify.v2.services(`VA${digits}`);
    };

    test("@prelude.so/sdk: creates, checks and looks up, and an invalid key is rejected", async () => {
      const client = preludeOf(service.customer.key);
      const target = { type: "phone_number", value: nextNumber() } as const;
      const created = await client.verification.create({ target });
      expect(created).toMatchObject({ id: expect.stringMatching(/^vrf_\w{26}$/), status: "success" });
      const code = await codeTo(target.value);
      expect(await client.verification.check({ target, code: code === "000000" ? "000001" : "000000" })).toMatchObject({ id: created.id, status: "failure" });
      expect(await client.verification.check({ target, code })).toMatchObject({ id: created.id, status: "success" });
      await expect(preludeOf("pp_none").verification.create({ target })).rejects.toMatchObject({ status: 401, error: { code: "invalid_api_key" } });
      expect((await client.lookup.lookup("+33612345678")).country_code).toBe("FR");
    });

    test("twilio: creates, fetches and checks, and an invalid key is rejected", async () => {
      const verify = twilioOf(service.customer.key);
      const to = nextNumber();
      const created = await verify.verifications.create({ to, channel: "sms" });
      expect(created).toMatchObject({ sid: expect.stringMatching(/^VE[0-9a-f]{32}$/), status: "pending" });
      expect((await verify.verifications(to).fetch()).sid).toBe(created.sid);
      const code = await codeTo(to);
      expect(await verify.verificationChecks.create({ to, code: code === "000000" ? "000001" : "000000" })).toMatchObject({ status: "pending", valid: false });
      expect(await verify.verificationChecks.create({ to, code })).toMatchObject({ status: "approved", valid: true });
      await expect(twilioOf("pp_none").verifications.create({ to, channel: "sms" })).rejects.toMatchObject({ status: 401, code: 20003 });
      expect((await verify.fetch()).codeLength).toBe(6);
    });

    test("/v1 and the wires verify the same number independently", async () => {
      const { customer_uuid, key } = service.customer;
      const number = nextNumber();
      const post = async (path: string, fields: object) => {
        const headers = { "content-type": "application/json", "x-api-key": key };
        const response = await fetch(`${base}/v1/${path}`, { method: "POST", headers, body: JSON.stringify({ customer_uuid, ...fields }) });
        return (await response.json()) as { status: string; authentication_uuid: string };
      };
      const { authentication_uuid } = await post("authentication", { phone_number: number });
      const ofV1 = await codeTo(number);
      await preludeOf(key).verification.create({ target: { type: "phone_number", value: number } });
      const ofPrelude = await codeTo(number);
      await twilioOf(key).verifications.create({ to: number, channel: "sms" });
      const ofTwilio = await codeTo(number);
      expect((await post("check", { authentication_uuid, check_code: ofV1 })).status).toBe("valid");
      expect((await preludeOf(key).verification.check({ target: { type: "phone_number", value: number }, code: ofPrelude })).status).toBe("success");
      expect((await twilioOf(key).verificationChecks.create({ to: number, code: ofTwilio })).status).toBe("approved");
    });

    test("an unknown path gives 404 in the format of its wire", async () => {
      const ask = async (path: string) => {
        const response = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${service.customer.key}` } });
        return [response.status, await response.json()];
      };
      expect(await ask("/v2/none")).toEqual([404, expect.objectContaining({ code: "not_found" })]);
      for (const path of ["/v2/Services/none/none/none/none", "/v2/Attempts", "/v2/Templates", "/v2/SafeList/Numbers/1", "/v2/Forms/x"])
        expect(await ask(path)).toEqual([404, expect.objectContaining({ code: 20404, message: `The requested resource ${path.slice(3)} was not found` })]);
    });
  });
}
