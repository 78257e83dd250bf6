import { OtpInput } from "./element.js";

export type { OtpAnswer, OtpCompleteEvent, OtpInputAttributes, OtpInputElement, OtpInputProperties } from "./types.js";
export { type OtpWords, otpWords } from "./words.js";

// On a server that renders the page there is nothing to define it in; twice on one page, the first stays.
if (globalThis.customElements?.get("otp-input") === undefined) globalThis.customElements?.define("otp-input", OtpInput);
