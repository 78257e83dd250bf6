import { OtpInput } from "./element.js";

export type { OtpAnswer, OtpCompleteEvent, OtpInputAttributes, OtpInputElement, OtpInputProperties, OtpResendEvent } from "./types.js";
export { type OtpWords, otpWords } from "./words.js";

// A server that renders the page has no registry. If the script is loaded twice, the first definition stays.
if (globalThis.customElements?.get("otp-input") === undefined) globalThis.customElements?.define("otp-input", OtpInput);
