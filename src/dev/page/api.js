/** The customer that this page calls as, and what else the demo says of itself; made known by `connect`. */
export let session;

/** Asks the demo who it is. After a restart the key is another one. */
export async function connect() {
  session = await (await fetch("/dev/session")).json();
  return session;
}

/** Calls the service as any app would: `{ status, body, fact }`, or `{ status: 0 }` when nobody answers. `fact`: what stands in a header `x-phoneproof-…`. `as`: the customer that calls. */
export async function call(method, path, fields, as = session) {
  const headers = { "x-api-key": as.api_key };
  if (fields === undefined) headers["customer-uuid"] = as.customer_uuid;
  else headers["content-type"] = "application/json";
  try {
    const sent = fields && JSON.stringify({ customer_uuid: as.customer_uuid, ...fields });
    const response = await fetch(path, { method, headers, ...(sent && { body: sent }) });
    return { status: response.status, body: await response.json(), fact: (name) => response.headers.get(`x-phoneproof-${name}`) };
  } catch {
    return { status: 0, body: { code: "no_answer", message: "The demo does not answer. Is it still running in its terminal?" } };
  }
}

/** What a person types for a number, as the service wants it: spaces, dots, hyphens and brackets dropped, a leading 00 read as +. */
export function e164(typed) {
  return typed.replace(/[\s().\-\u2010-\u2015/]/g, "").replace(/^00/, "+");
}
