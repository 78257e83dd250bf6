/** `+14155552671` as `14155552671`, for carriers that want it so. */
export function digits(number: string): string {
  return number.replace(/^\+/, "");
}

/** The value of an `authorization` header for basic authentication. */
export function basicAuth(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}
