import { createHash, randomUUID } from "node:crypto";
import { type CodeMessage, createVerifier, type Store, type Verifier, type VerifierOptions } from "../../src/index.js";
import { noSpamRules } from "../../src/testing/verifier/no-limits.js";
import { logger, secret } from "../support/verifier.js";
import { numberAt } from "./kit.js";

/** A process of a self-hoster: a verifier on a store, and what it sent. */
export interface Process {
  readonly verifier: Verifier;
  readonly sent: readonly CodeMessage[];
  codeOf(id: string): string;
}

export function processOn(store: Store, options: Partial<VerifierOptions> = {}): Process {
  const sent: CodeMessage[] = [];
  const verifier = createVerifier({
    store,
    secret,
    countries: "all",
    logger: logger(),
    statistics: false,
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
      // A message costs 0.1.
      ...(options.customers !== undefined && { plan: () => ({ route: "only", price: 0.1 }) }),
    },
    ...options,
    policy: { spam: noSpamRules, ...options.policy },
    callbacks: { worker: false, ...options.callbacks },
  });
  return { verifier, sent, codeOf: (id) => sent.findLast((one) => one.authentication_uuid === id)?.code ?? "none" };
}

let last = 0;
/** A valid number that was not handed out before. */
export const newNumber = (): string => numberAt(++last);

/** A code that is not `code`. */
export const wrongFor = (code: string): string => (code === "000000" ? "111111" : "000000");

/** The status of an outcome, or the code of the error. */
export const outcome = (call: Promise<{ readonly status?: string }>): Promise<string> =>
  call.then(
    ({ status }) => status ?? "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

export const rightFlow = "pending invalid valid already_validated";

/** A create, a wrong code, the right code twice: what each returned. */
export async function flow({ verifier, codeOf }: Process, of: { readonly customer_uuid?: string } = {}): Promise<string> {
  const created = await verifier.createAuthentication({ phone_number: newNumber(), ...of });
  const check = (check_code: string) => outcome(verifier.check({ authentication_uuid: created.authentication_uuid, check_code, ...of }));
  const code = codeOf(created.authentication_uuid);
  return [created.status, await check(wrongFor(code)), await check(code), await check(code)].join(" ");
}

/** What doctor reports about the store. */
export const aboutStore = async (verifier: Verifier) => (await verifier.diagnose()).filter(({ about }) => about === "store");

/** Posts to /v1 with a key: the HTTP status, and the status or code in the body. */
export async function post(verifier: Verifier, key: string, path = "/v1/check", body: Record<string, unknown> = {}): Promise<string> {
  const answer = await verifier.http.handle({
    method: "POST",
    path,
    header: (name) => (name === "x-api-key" ? key : undefined),
    body: async () => ({ kind: "parsed", value: body }),
  });
  const { status, code } = JSON.parse(answer.body) as { status?: string; code?: string };
  return `${answer.status} ${status ?? code}`;
}

/** What `post` returns for a key that is accepted, since its body is empty. */
export const letIn = "400 bad_request";

export const keyIdOf = (key: string): string => createHash("sha256").update(key).digest("hex").slice(0, 16);

/** Entries of the option `customers`. */
export const tenants = (count: number, policy: VerifierOptions["policy"] = {}) =>
  Array.from({ length: count }, () => ({ customer_uuid: randomUUID() as string, keys: [`pp_${randomUUID()}`], policy }));

/** How often each occurs. */
export function counted(all: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}
