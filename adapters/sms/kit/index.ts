/** `phoneproof/senders/kit`: the building blocks of the built-in carriers, for your own. */

export type { DeliveryStatus, Receipt, ReceiptReading, ReceiptRequest, ReceiptSource } from "../../../src/ports/receipts.js";
export type { Channel, CodeMessage, Fallback, RegisteredIds, SendContext, SendOutcome, SmsSender } from "../../../src/ports/sms-sender.js";
export { errorToken, failureOf, withCode } from "../../kit/error-code.js";
export { isRecord, parseJson, pick } from "../../kit/json.js";
export { optionError, requireText } from "../../kit/option-error.js";
export type { CarrierRequest, CarrierResponse } from "../../kit/request.js";
export { basicAuth, digits } from "../../kit/spelling.js";
export type { Fetch, FetchResponse, TransportOptions } from "../../kit/transport.js";
export type { ByCountry } from "./by-country.js";
export { type CarrierApi, type CarrierOptions, carrierSender, type Variables } from "./carrier-sender.js";
export type { Extra, Fields } from "./extra.js";
export { framedSender, type Made, type SenderFrame, type SenderOptions } from "./framed-sender.js";
export { acceptedAs, idToken, notSent, rejectedWith } from "./outcomes.js";
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
