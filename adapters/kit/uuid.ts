const lowerCase = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text is a UUID in lower case. */
export const isUuid = (text: string): boolean => lowerCase.test(text);

/** Packs a lower-case UUID into 22 characters; other texts are escaped between colons. */
export function packUuid(text: string): string {
  return isUuid(text) ? Buffer.from(text.replaceAll("-", ""), "hex").toString("base64url") : `:${encodeURIComponent(text)}:`;
}

/** Reverses `packUuid`. */
export function unpackUuid(packed: string): string {
  if (packed.startsWith(":")) return decodeURIComponent(packed.slice(1, -1));
  return Buffer.from(packed, "base64url")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
