import * as z from "zod";

/** Descriptions for the OpenAPI document. Not zod's global registry, which belongs to the host app. */
export const descriptions = z.registry<{ description: string }>();

/** A copy of a schema with a description. */
export function described<S extends z.ZodType>(schema: S, description: string): S {
  const copy = schema.clone();
  descriptions.add(copy, { description });
  return copy;
}

/** "any string with the shape of a UUID (version bits are not checked)" (docs/contract.md#uuids). Letters are read as lower case. */
export const Uuid = z.guid("must be a UUID, for example 2f0e6f5c-3b7a-4d58-9c1e-6a1b2c3d4e5f").toLowerCase();

export const CustomerUuid = described(Uuid, "The caller's customer identifier.");

/** A timestamp in a response: `YYYY-MM-DDTHH:MM:SS.sssZ` (docs/contract.md#timestamps). */
export const Timestamp = z.iso.datetime({ precision: 3 });

/** A value that is not a string is `bad_request`; the number itself is validated where it is parsed (`invalid_phone_number`). */
export const PhoneNumber = described(z.string('must be a string in E.164 form, for example "+14155552671"'), "The number in E.164 form: + and digits.");

/** A whole number in a range. `words`: what it must be. */
export const integer = (least: number, most: number, words: string) => z.int(words).min(least, words).max(most, words);

/** BCP 47, as far as its form goes. */
export const locale = z.string("must be a string").regex(/^[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,8}$/, "must be a language tag such as en or pt-BR");
