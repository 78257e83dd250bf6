/** The customer that this page calls as; made known by `connect`. */
export let session;

/** Asks the demo who it is. After a restart the key is another one. */
export async function connect() {
  session = await (await fetch("/dev/session")).json();
  return session;
}

/**
 * Calls the service as any app would: `{ status, body }`, or `{ status: 0 }` when nobody answers.
 * Every call is told to the document as a `call` event, for the panel that shows it.
 */
export async function call(method, path, fields) {
  const headers = { "x-api-key": session.api_key };
  if (fields === undefined) headers["customer-uuid"] = session.customer_uuid;
  else headers["content-type"] = "application/json";
  const sent = fields && { customer_uuid: session.customer_uuid, ...fields };
  const began = performance.now();
  let status = 0;
  let body;
  try {
    const response = await fetch(path, { method, headers, ...(sent && { body: JSON.stringify(sent) }) });
    status = response.status;
    body = await response.json();
  } catch {
    body = { code: "no_answer", message: "The demo does not answer. Is it still running in its terminal?" };
  }
  const took = Math.round(performance.now() - began);
  document.dispatchEvent(new CustomEvent("call", { detail: { method, path, headers, sent, status, body, took } }));
  return { status, body };
}

/** What a person types for a number, as the service wants it: spaces, dots, hyphens and brackets dropped, a leading 00 read as +. */
export function e164(typed) {
  return typed.replace(/[\s().\-\u2010-\u2015/]/g, "").replace(/^00/, "+");
}
