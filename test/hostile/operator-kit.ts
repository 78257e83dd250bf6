import { memoryStore } from "../../adapters/store/memory/index.js";
import {
  type AuthenticationResponse,
  type CallOptions,
  type CodeMessage,
  type CreateAuthenticationRequest,
  createVerifier,
  type SmsSender,
  type Store,
  VerifierError,
  type VerifierEvent,
  type VerifierOptions,
} from "../../src/index.js";
import { type FixedClock, fixedClock } from "../../src/testing/index.js";
import { logger, secret, start } from "../support/verifier.js";

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A mobile number of one French range of 10,000. */
export const near = (index: number): string => `+33612${340_000 + index}`;
/** French mobile numbers, each in another range. */
export const far = (index: number): string => `+336${10 + ((index * 37) % 28)}${String((index * 7919) % 1_000_000).padStart(6, "0")}`;
/** Mobile numbers spread over Uzbekistan. */
export const abroad = (index: number): string => `+99890${String((index * 7919) % 10_000_000).padStart(7, "0")}`;
/** A different address for each index; the first 65,536 are in one /8. */
export const address = (index: number, first = 81): string => `${first}.${(index >> 8) % 256}.${index % 256}.7`;
/** Like `address`, each in its own /64, all in one /32. */
export const address6 = (index: number): string => `2001:db8:${(index >> 8).toString(16)}:${(index & 255).toString(16)}::1`;

export const noRules = Object.fromEntries(
  ["range", "crowd", "country", "newCountries", "address", "strangeNetwork"].map((rule) => [rule, { mode: "off" as const }]),
);

/** How often each value occurs. */
export const tally = (values: readonly string[]): Record<string, number> =>
  values.reduce<Record<string, number>>((sums, value) => Object.assign(sums, { [value]: (sums[value] ?? 0) + 1 }), {});

/** The message of the error that options throw, or `accepted`. */
export function refusal(make: () => unknown): string {
  try {
    make();
    return "accepted";
  } catch (error) {
    return (error as Error).message;
  }
}

/** A verifier with default options and rules, on its own memory store with the same clock. */
export function service(options: Partial<VerifierOptions> = {}, { at = start, maxRecords = 100_000 } = {}) {
  const clock = (options.clock as FixedClock | undefined) ?? fixedClock(at);
  const store: Store = options.store ?? memoryStore({ now: () => clock.now(), maxRecords });
  const messages: CodeMessage[] = [];
  const events: VerifierEvent[] = [];
  const log = logger();
  const sender: SmsSender = {
    async send(message) {
      messages.push(message);
      return { outcome: "accepted" };
    },
  };
  const verifier = createVerifier({
    sender,
    secret,
    countries: "all",
    logger: log,
    callbacks: { worker: false },
    onEvent: (event) => void events.push(event),
    ...options,
    store,
    clock,
  });
  const create = async (phone_number: string, fields: Partial<CreateAuthenticationRequest> = {}, call?: CallOptions) => {
    try {
      return await verifier.createAuthentication({ phone_number, ...fields } as CreateAuthenticationRequest, call);
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error;
      return { status: error.code, authentication_uuid: "" } as unknown as AuthenticationResponse & { retry_after?: number };
    }
  };
  const status = async (phone_number: string, fields: Partial<CreateAuthenticationRequest> = {}): Promise<string> =>
    (await create(phone_number, fields)).status;
  const codeOf = (id: string) => messages.findLast((message) => message.authentication_uuid === id)?.code ?? "no message";
  const enter = async (authentication_uuid: string) =>
    (await verifier.check({ authentication_uuid, check_code: codeOf(authentication_uuid) })).status as string;
  const enterWrong = async (authentication_uuid: string) =>
    (await verifier.check({ authentication_uuid, check_code: codeOf(authentication_uuid) === "000000" ? "111111" : "000000" })).status as string;
  /** A create, and a check of the right code if it was sent. */
  const visit = async (phone_number: string, fields: Partial<CreateAuthenticationRequest> = {}): Promise<string> => {
    const made = await create(phone_number, fields);
    return made.status === "pending" ? enter(made.authentication_uuid) : made.status;
  };
  /** The same service after a deployment with other options. */
  const released = (changed: Partial<VerifierOptions>) => service({ ...options, sender, ...changed, store, clock });
  const alarms = () => events.flatMap((event) => (event.type === "alarm" ? [event] : []));
  return { verifier, clock, store, messages, events, log, create, status, enter, enterWrong, visit, released, alarms };
}

/** The results of `count` calls, one after the other. */
export async function each(count: number, call: (index: number) => Promise<string>): Promise<string[]> {
  const all: string[] = [];
  for (let index = 0; index < count; index++) all.push(await call(index));
  return all;
}
