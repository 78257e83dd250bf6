/** `phoneproof/senders/kit`: what the library's own carriers are made of, for yours. */

export type { DeliveryStatus, Receipt, ReceiptReading, ReceiptRequest, ReceiptSource } from "../../../src/ports/receipts.js";
export type { RegisteredIds, SendContext, SendOutcome, SmsMessage, SmsSender } from "../../../src/ports/sms-sender.js";
export type { ByCountry } from "./by-country.js";
export { type CarrierAnswer, type CarrierApi, type CarrierOptions, type CarrierRequest, carrierSender } from "./carrier-sender.js";
export type { Extra, Fields } from "./extra.js";
export { framedSender, type Made, type SenderFrame, type SenderOptions } from "./framed-sender.js";
export { isRecord, parseJson, pick } from "./json.js";
export { optionFault, requireText } from "./option-fault.js";
export { acceptedAs, errorToken, failureOf, idToken, notSent, rejectedWith, withCode } from "./outcomes.js";
export {
  badSignature,
  bodyForm,
  bodyJson,
  bodyText,
  type CarrierReport,
  expired,
  isoTime,
  isStale,
  malformed,
  openSecrets,
  openTolerance,
  openUrlSecret,
  readReport,
  readReports,
  type StatusWords,
} from "./report.js";
export type { SenderId } from "./sender-id.js";
export { claimTime, readJwt, sameText, sha256Hex } from "./signature.js";
export { basicAuth, digits } from "./spelling.js";
export type { Fetch, FetchAnswer, TransportOptions } from "./transport.js";
export type { Variables } from "./variables.js";
