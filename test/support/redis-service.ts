import { randomUUID } from "node:crypto";
import { createVerifier } from "../../src/create-verifier.js";
import type { VerifierOptions } from "../../src/options/types.js";
import type { CodeMessage } from "../../src/ports/sms-sender.js";
import type { Store } from "../../src/ports/store.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";

/** A response of the service, with the time it took in milliseconds. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: { readonly authentication_uuid: string; readonly status: string; readonly code: string };
  readonly ms: number;
}

/** A service on a store, called through the internal HTTP interface, and the messages it has sent. */
export interface Service {
  readonly customer: string;
  readonly sent: readonly CodeMessage[];
  create(number: string, fields?: Record<string, string>, idempotencyKey?: string): Promise<Answer>;
  retry(id: string): Promise<Answer>;
  check(id: string, code: string, idempotencyKey?: string): Promise<Answer>;
  /** Calls by number. */
  start(number: string): Promise<Answer>;
  checkNumber(number: string, code: string): Promise<Answer>;
  /** The last code sent for an authentication. */
  codeOf(id: string): string;
  /** A code that none of its messages contained. */
  wrongCodeFor(id: string): string;
}

/** Creates one. Several may share `customer`, and so their authentications. */
export function serviceOn(store: Store, options: Partial<VerifierOptions> = {}, customer: string = randomUUID()): Service {
  const key = "k".repeat(40);
  const sent: CodeMessage[] = [];
  const verifier = createVerifier({
    store,
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
      // A message costs 1.
      ...(options.policy?.limits?.spend !== undefined && { plan: () => ({ route: "only", price: 1 }) }),
    },
    secret: "s".repeat(40),
    countries: "all",
    customers: [{ customer_uuid: customer, keys: [key] }],
    logger: { info() {}, warn() {}, error() {} },
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
  });

  async function post(path: string, fields: Record<string, string>, idempotencyKey?: string): Promise<Answer> {
    const started = performance.now();
    const { status, headers, body } = await verifier.http.handle({
      method: "POST",
      path,
      header: (name) => ({ "x-api-key": key, "idempotency-key": idempotencyKey })[name],
      body: async () => ({ kind: "parsed", value: { customer_uuid: customer, ...fields } }),
    });
    return { status, retryAfter: headers["retry-after"], body: JSON.parse(body), ms: performance.now() - started };
  }

  /** Makes a direct call, and returns it as a response. */
  async function called(call: Promise<object>): Promise<Answer> {
    const started = performance.now();
    const [status, body] = await call.then(
      (answer) => [200, answer],
      (fault: { status: number }) => [fault.status, fault],
    );
    return { status, retryAfter: undefined, body, ms: performance.now() - started } as Answer;
  }

  const codesOf = (id: string) => sent.filter((message) => message.authentication_uuid === id).map(({ code }) => code);
  return {
    customer,
    sent,
    create: (number, fields = {}, idempotencyKey) => post("/v1/authentication", { phone_number: number, ...fields }, idempotencyKey),
    retry: (id) => post("/v1/retry", { authentication_uuid: id }),
    check: (id, code, idempotencyKey) => post("/v1/check", { authentication_uuid: id, check_code: code }, idempotencyKey),
    start: (number) => called(verifier.verifications.start({ customer_uuid: customer, phone_number: number })),
    checkNumber: (number, code) => called(verifier.verifications.check({ customer_uuid: customer, phone_number: number, check_code: code })),
    codeOf: (id) => codesOf(id).at(-1) ?? "",
    wrongCodeFor: (id) => ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !codesOf(id).includes(code)) ?? "",
  };
}

let last = 0;

/** A valid mobile number that was not returned before. */
export function newNumber(): string {
  last += 1;
  return `+336${String(10_000_000 + last)}`;
}
