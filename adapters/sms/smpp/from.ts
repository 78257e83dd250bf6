import { failureOf } from "../../kit/error-code.js";
import { openSenderId, type SenderId, type Senders } from "../kit/sender-id.js";
import type { Address } from "./pdu.js";

/**
 * Reads the option `from`. If absent, the message centre sets its own. Instead of an address, a sentence may explain why
 * a message has none.
 *
 * @param kind Type of number and numbering plan that override those derived from the address.
 * @throws Error that names the option and the fix if `from` is empty or not a valid address.
 */
export function openFrom(from: SenderId | undefined, kind: { readonly ton: number | undefined; readonly npi: number | undefined }): Senders<Address | string> {
  const { ton, npi } = kind;
  const addressOf = (text: string) => {
    const address = sourceAddress(text);
    return address && { ...address, ton: ton ?? address.ton, npi: npi ?? address.npi };
  };
  if (from === undefined) return { of: () => ({ ton: ton ?? 0, npi: npi ?? 0, address: "" }), has: () => true };

  const senders = openSenderId("smppSender", from, true);
  const check = (option: string, text: string) => {
    if (addressOf(text) === undefined) throw new Error(`smppSender: option \`${option}\` ${fix}`);
  };
  if (typeof from === "string") check("from", from);
  if (typeof from === "object") for (const [country, text] of Object.entries(from)) check(`from.${country}`, text);

  return {
    has: senders.has,
    of(message) {
      let text: string | undefined;
      try {
        text = senders.of(message);
      } catch (error) {
        return `the option \`from\` failed: ${failureOf(error)}`;
      }
      if (text === undefined) return `the option \`from\` names no sender for ${message.country ?? "a number without a country"}`;
      return addressOf(text) ?? `function \`from\` returned a sender that ${fix}`;
    },
  };
}

const fix =
  "must be + and up to 15 digits, a short code of up to 8 digits, or a name of up to 11 ASCII characters with a letter in it: give one of these, or leave it out";

/** 1/1 (E.164) for `+` and digits, 3/0 (network specific) for a short code, 5/0 (alphanumeric) for a name. */
function sourceAddress(text: string): Address | undefined {
  if (/^\+\d{5,15}$/.test(text)) return { ton: 1, npi: 1, address: text.slice(1) };
  if (/^\d{1,8}$/.test(text)) return { ton: 3, npi: 0, address: text };
  if (/^(?=.*[A-Za-z])[ -~]{1,11}$/.test(text)) return { ton: 5, npi: 0, address: text };
  return undefined;
}
