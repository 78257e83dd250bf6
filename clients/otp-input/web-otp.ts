/** The code of the next message whose last line is `@domain #code`, where the browser reads them (Chrome on Android asks the person first). Undefined: it does not, the person declined, or the signal was aborted. */
export async function codeFromMessage(signal: AbortSignal): Promise<string | undefined> {
  if (!("OTPCredential" in globalThis)) return undefined;
  try {
    const credential = await navigator.credentials.get({ otp: { transport: ["sms"] }, signal } as CredentialRequestOptions);
    return (credential as { readonly code?: string } | null)?.code;
  } catch {
    return undefined;
  }
}
