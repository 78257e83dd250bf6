import type { OtpInputProperties } from "./types.js";

const texts = { status: "status", nextRetryAt: "next-retry-at", name: "name", label: "label" } as const;
const numbers = {
  length: "length",
  remainingChecks: "remaining-checks",
  remainingRetry: "remaining-retry",
  retries: "retries",
  callAfter: "call-after",
} as const;
const flags = { disabled: "disabled", required: "required" } as const;

/** The attribute of each property that has one. */
export const attributes = { ...texts, ...numbers, ...flags };

/** Default and maximum number of digits. */
const usualLength = 6;
const greatestLength = 12;

/** Default number of messages after the first. */
const usualRetries = 4;

/** Extends a class of elements with an accessor for each attribute. */
export function reflecting(elements: typeof HTMLElement): new () => HTMLElement & Pick<OtpInputProperties, keyof typeof attributes> {
  class Reflecting extends elements {}
  for (const [property, attribute] of Object.entries(attributes)) {
    Object.defineProperty(Reflecting.prototype, property, {
      get(this: Element) {
        return read(property, this.getAttribute(attribute));
      },
      set(this: Element, value: unknown) {
        if (value === undefined || value === null || value === false || value === "") this.removeAttribute(attribute);
        else this.setAttribute(attribute, value === true ? "" : value instanceof Date ? value.toISOString() : `${value}`);
      },
    });
  }
  return Reflecting as never;
}

function read(property: string, text: string | null): unknown {
  if (property in flags) return text !== null;
  if (property in texts) return text ?? "";
  const number = /^\d{1,4}$/.test(text ?? "") ? Number(text) : null;
  if (property === "retries") return number ?? usualRetries;
  if (property !== "length") return number;
  return number !== null && number >= 1 && number <= greatestLength ? number : usualLength;
}
