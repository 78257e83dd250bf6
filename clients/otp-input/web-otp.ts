/**
 * The code of the next message whose last line is `@domain #code`, if the browser reads messages (Chrome on Android
 * asks the user first). Undefined if it does not, the user declined, or the signal was aborted.
 */
export async function codeFromMessage(signal: AbortSignal): Promise<string | undefined> {
  if (!("OTPCredential" in globalThis)) return undefined;
  try {
    const credential = await navigator.credentials.get({ otp: { transport: ["sms"] }, signal } as CredentialRequestOptions);
    return (credential as { readonly code?: string } | null)?.code;
  } catch {
    return undefined;
  }
}
