import { countryKeyError } from "../../../src/domain/countries.js";
import { synchronous } from "../../../src/domain/promises.js";
import type { CodeMessage } from "../../../src/ports/sms-sender.js";
import { failureOf } from "../../kit/error-code.js";
import { type ByCountry, forCountry } from "../kit/by-country.js";
import { tags } from "./pdu.js";

/** An optional parameter (TLV) of submit_sm that a message centre requires in addition to SMPP 3.4. */
export interface SmppParameter {
  /** 0 to 0xFFFF. */
  readonly tag: number;
  /** Its octets, up to 65,535. A string is written as Latin-1, one octet per character, without a trailing NUL. */
  readonly value: string | Uint8Array;
}

/** Parameters for every message, per country (with `default` for the rest), or a function of the message. */
export type SmppParameters = readonly SmppParameter[] | ByCountry<readonly SmppParameter[]> | ((message: CodeMessage) => readonly SmppParameter[] | undefined);

/**
 * Tags of the ids of a registered text (India's DLT): principal entity and template, as digits without a NUL. They are
 * not part of SMPP; the operators of India have agreed on them.
 */
const registeredTags = { entity: 0x1400, template: 0x1401 } as const;

/** Tags that the sender writes itself. */
const ownTags: readonly number[] = [tags.messagePayload, tags.sarReference, tags.sarTotal, tags.sarNumber];

/**
 * Reads the option `parameters`. Those of a registered text are added; the option overrides them where tags are equal.
 * Returns a function that returns a message's parameters by tag, or a sentence that explains what is wrong with the
 * function's result.
 *
 * @throws Error that names the option and the fix.
 */
export function openParameters(option: SmppParameters | undefined): (message: CodeMessage) => ReadonlyMap<number, Buffer> | string {
  const chosen = chooser(option);
  return (message) => {
    const { entity, template } = message.registered ?? {};
    const octets = new Map<number, Buffer>();
    if (entity !== undefined) octets.set(registeredTags.entity, octetsOf(entity));
    if (template !== undefined) octets.set(registeredTags.template, octetsOf(template));
    let parameters: readonly SmppParameter[] | undefined;
    try {
      parameters = chosen(message);
    } catch (error) {
      return `the option \`parameters\` failed: ${failureOf(error)}`;
    }
    if (parameters !== undefined && !areParameters(parameters)) return `the result of function \`parameters\` must be ${fix}`;
    for (const { tag, value } of parameters ?? []) octets.set(tag, octetsOf(value));
    return octets;
  };
}

const fix =
  "a list of { tag, value } with a tag from 0 to 0xFFFF that the sender does not write itself, and a text of Latin-1 characters or a Uint8Array, of at most 65535 octets";

function chooser(option: SmppParameters | undefined): (message: CodeMessage) => readonly SmppParameter[] | undefined {
  if (option === undefined) return () => undefined;
  if (typeof option === "function") return (message) => synchronous("parameters", option(message));
  if (areParameters(option)) return () => option;
  if (typeof option !== "object" || option === null || Array.isArray(option))
    throw new Error(`smppSender: option \`parameters\` must be ${fix}; or such a list for each country; or a function of the message`);
  const byCountry = new Map(Object.entries(option as ByCountry<readonly SmppParameter[]>));
  for (const [country, parameters] of byCountry) {
    const problem = countryKeyError(country);
    if (problem !== undefined) throw new Error(`smppSender: option \`parameters.${country}\` ${problem}`);
    if (!areParameters(parameters)) throw new Error(`smppSender: option \`parameters.${country}\` must be ${fix}`);
  }
  return (message) => forCountry(byCountry, message);
}

function areParameters(value: unknown): value is readonly SmppParameter[] {
  return Array.isArray(value) && value.every(isParameter);
}

function isParameter(parameter: Partial<SmppParameter> | null | undefined): boolean {
  const { tag, value } = parameter ?? {};
  const text = typeof value === "string" && !/[^\0-\xff]/.test(value);
  return Number.isInteger(tag) && tag! >= 0 && tag! <= 0xffff && !ownTags.includes(tag!) && (text || value instanceof Uint8Array) && value.length <= 0xffff;
}

function octetsOf(value: string | Uint8Array): Buffer {
  return typeof value === "string" ? Buffer.from(value, "latin1") : Buffer.from(value);
}
