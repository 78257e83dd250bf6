import type { HttpResponse } from "../http/message.js";
import { isSent, json, type Outcome, outerStatusOf, statusOf } from "./kit/answer.js";
import { byStandardWebhook, byToken, type Secrets } from "./kit/authentic.js";
import { type Confirmation, type Hook, type HookOptions, type Message, makeHook } from "./kit/hook.js";
import { openSecrets, optionError } from "./kit/option-error.js";
import { isBeforeToday, pick, repeatKey, textOf, timeOf, toNumber } from "./kit/read.js";

export interface SupabaseHookOptions extends HookOptions {
  /** The secret of the Send SMS hook, `v1,whsec_<base64>`. Several during a rotation: a list, or with `|` between them. */
  readonly secrets: Secrets;
  /**
   * A token that a database webhook sends in the header `authorization`. It reports changes of `auth.users`, and a
   * trigger those of `auth.mfa_challenges`, to `/hooks/supabase/confirmed`. Default: no such route.
   */
  readonly confirmToken?: Secrets | undefined;
}

/** The Send SMS hook of Supabase Auth, which gives up after 5 s. @throws TypeError for an invalid option. */
export function supabaseHook(options: SupabaseHookOptions): Hook {
  const owner = "supabaseHook";
  const fix = "Pass the hook's secret as Supabase displays it: v1,whsec_ and base64.";
  const secrets = openSecrets(owner, "secrets", options.secrets, fix).flatMap((one) => one.split("|").map((secret) => secret.trim()));
  if (!secrets.every((secret) => secret.startsWith("v1,whsec_"))) throw optionError(owner, "secrets", "must start with v1,whsec_", fix);
  const keys = secrets.map((secret) => secret.slice("v1,".length));
  return makeHook(owner, options, {
    defaults: { name: "supabase", within: 3500 },
    options: ["secrets", "confirmToken"],
    authenticate: byStandardWebhook(owner, "secrets", keys, fix),
    read,
    write,
    confirmed:
      options.confirmToken === undefined ? undefined : { authenticate: byToken(owner, { token: options.confirmToken }, "confirmToken"), read: readChange },
  });
}

function read(body: unknown, now: number): Message {
  const [user, sms] = [pick(body, "user"), pick(body, "sms")];
  // For MFA and changes of the number, the target is not the user's number. Older servers do not send it.
  const phone_number = textOf(pick(sms, "phone")) ?? pick(user, "phone");
  const code = pick(sms, "otp");
  const confirmedAt = pick(user, "phone_confirmed_at");
  const at = timeOf(confirmedAt);
  return {
    phone_number,
    code,
    purpose: pick(sms, "sms_type"),
    locale: pick(user, "user_metadata", "locale"),
    ip: pick(body, "metadata", "ip_address"),
    user_id: pick(user, "id"),
    known: toNumber(phone_number) === toNumber(pick(user, "phone")) && isBeforeToday(confirmedAt, now),
    // Each try has another webhook-id, and each code is a new one.
    idempotency_key: textOf(pick(body, "metadata", "uuid")) ?? repeatKey(code),
    signedIn: at === undefined ? undefined : { phone_number: pick(user, "phone"), at: Math.max(at, timeOf(pick(user, "last_sign_in_at")) ?? 0) },
  };
}

/** Only an error inside of a 200 reaches the user, and only one with a message is an error. */
function write(outcome: Outcome): HttpResponse {
  if (isSent(outcome)) return json(200, {});
  return json(outerStatusOf(outcome), { error: { http_code: statusOf(outcome), message: outcome.message } });
}

/** A change of a row, as database webhooks report it; of a challenge, as the trigger in docs/behind/supabase.md does. */
function readChange(body: unknown): Confirmation | "nobody" | undefined {
  const [type, table, record, old] = ["type", "table", "record", "old_record"].map((name) => pick(body, name));
  if (typeof type !== "string" || typeof table !== "string") return undefined;
  const phone_number = textOf(pick(record, "phone"));
  if (type !== "UPDATE" || pick(body, "schema") !== "auth" || phone_number === undefined) return "nobody";
  const changed = (column: string) => (pick(record, column) !== pick(old, column) ? pick(record, column) : undefined);
  const timeIn = (column: string) => timeOf(changed(column));
  if (table === "mfa_factors") return changed("status") === "verified" ? { phone_number, at: timeOf(pick(record, "updated_at")) } : "nobody";
  let at: number | undefined;
  if (table === "mfa_challenges") at = timeIn("verified_at");
  if (table === "users" && pick(record, "phone_confirmed_at") !== null) at = timeIn("last_sign_in_at") ?? timeIn("phone_confirmed_at");
  return at === undefined ? "nobody" : { phone_number, at };
}
