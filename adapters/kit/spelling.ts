/** `+14155552671` as `14155552671`, for carriers that require it. */
export function digits(number: string): string {
  return number.replace(/^\+/, "");
}

/** The `authorization` header for basic authentication. */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}
