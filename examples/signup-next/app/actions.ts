"use server"; // Next.js rejects an action whose Origin is another site

import { headers } from "next/headers";
import { redirect } from "next/navigation";
import { parsePhoneNumber } from "phoneproof";
import { type Answer, deviceId, pending, proven } from "../lib/session";
import { verifier } from "../lib/verifier";
import { wordsForError, wordsForRefused, wordsForTyped } from "../lib/words";

export interface NumberState {
  readonly problem?: string;
  readonly phone?: string;
  readonly country?: string;
}

/**
 * The user's address. Trust only the header that your own proxy writes: anyone can send others.
 * A proxy appends the address that it sees to x-forwarded-for, so behind one proxy it is the last; `next start` alone sets a missing header.
 * A zone, and the port that some proxies add, are removed here.
 */
async function address(): Promise<string | undefined> {
  const last = (await headers()).get("x-forwarded-for")?.split(",").at(-1)?.trim();
  return last?.replace(/^\[([^\]%]+).*|^([\d.]+):\d+$|%.*/, "$1$2");
}

export async function sendCode(_before: NumberState, form: FormData): Promise<NumberState> {
  const [phone, country] = [String(form.get("phone") ?? ""), String(form.get("country") ?? "")];
  const parsed = parsePhoneNumber(phone, { country });
  if (!parsed.ok) return { problem: wordsForTyped(parsed.reason), phone, country };
  try {
    const device_id = await deviceId();
    const answer = await verifier.createAuthentication({ phone_number: parsed.phone_number, device_type: "WEB", device_id, ip: await address() });
    const refused = wordsForRefused(answer);
    if (refused !== undefined) return { problem: refused, phone, country };
    const { authentication_uuid, phone_number } = answer;
    await pending.write({ authentication_uuid, phone_number, answer: told(answer) });
  } catch (error) {
    return { problem: wordsForError(error), phone, country };
  }
  redirect("/code");
}

/** Checks the code, or sends another one if the form asks for it, by a call if it asks for that. */
export async function answerCode(_before: Answer, form: FormData): Promise<Answer> {
  const asked = await pending.read();
  if (asked === undefined) redirect("/?ended=no_session");
  const { authentication_uuid } = asked;
  const checked = form.has("resend")
    ? await verifier.retry({ authentication_uuid, channel: form.get("resend") === "voice" ? "voice" : undefined })
    : await verifier.check({ authentication_uuid, check_code: String(form.get("code") ?? "") });
  if (checked.status === "valid") {
    await pending.forget();
    await proven.write(checked.phone_number); // find or create the account of this number here
    redirect("/");
  }
  if (checked.remaining_checks === 0) {
    await pending.forget();
    redirect(`/?ended=${checked.status === "invalid" ? "rate_limited" : checked.status}`);
  }
  const answer = told(checked);
  await pending.write({ ...asked, answer });
  return answer;
}

/** What the page may see: not the id. */
function told({ status, remaining_checks, remaining_retry, next_retry_at, carrier_refused }: Answer): Answer {
  return { status, remaining_checks, remaining_retry, ...(next_retry_at && { next_retry_at }), ...(carrier_refused && { carrier_refused }) };
}

export async function signOut(): Promise<void> {
  await proven.forget();
  redirect("/");
}
