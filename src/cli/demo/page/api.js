/** The customer that this page calls as, and the numbers it uses; set by `connect`. */
export let session;

/** After a restart the demo has another key. */
export async function connect() {
  session = await (await fetch("/dev/session")).json();
  return session;
}

/**
 * Calls the service as any app would: `{ status, body, fact }`, or `{ status: 0, body }` without a response.
 * `fact(name)` reads the header `x-phoneproof-…`. `as`: the customer that calls.
 */
export async function call(method, path, fields, as = session) {
  const headers = { "x-api-key": as.api_key };
  if (fields === undefined) headers["customer-uuid"] = as.customer_uuid;
  else headers["content-type"] = "application/json";
  try {
    const sent = fields && JSON.stringify({ customer_uuid: as.customer_uuid, ...fields });
    const response = await fetch(path, { method, headers, body: sent });
    return { status: response.status, body: await response.json(), fact: (name) => response.headers.get(`x-phoneproof-${name}`) };
  } catch {
    return { status: 0, body: { code: "no_answer", message: "No response. Is the demo still running in its terminal?" } };
  }
}

/**
 * A number as entered, converted to the form that the service expects: without spaces, dots, hyphens and brackets, and
 * with + for a leading 00.
 */
export function e164(typed) {
  return typed.replace(/[\s().\-\u2010-\u2015/]/g, "").replace(/^00/, "+");
}
