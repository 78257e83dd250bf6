import { isGuessable } from "../../domain/secret.js";
import type { CustomerConfig } from "../../options.js";
import type { CredentialWord, SmsSender } from "../../ports/sms-sender.js";
import { withTimeout } from "../clock/budget.js";
import type { Accounts } from "../door/account.js";
import type { Parts } from "../parts.js";
import { type Ping, ping } from "./ping.js";

/** Something to look at before users meet it. */
export interface Finding {
  /** `fault`: it will not work, or not safely; `warning`: it works, and somebody should have decided it; `note`: it was not looked at, or is good to know. */
  readonly level: "fault" | "warning" | "note";
  /** The option or part, for example `countries`. */
  readonly about: string;
  readonly message: string;
  /** What to do. */
  readonly mend: string;
}

export interface DiagnoseOptions {
  /** Whether users are to be served: values for development are faults then, and notes otherwise. Default true. */
  readonly production?: boolean | undefined;
}

/** What is looked at beside the parts: the options as they were given. */
export interface Patient {
  readonly parts: Parts;
  readonly accounts: Accounts;
  readonly sender: SmsSender;
  /** As configured; `undefined`: a source of the caller's own. */
  readonly customers: readonly CustomerConfig[] | undefined;
}

/** How long the carriers together may take, in milliseconds. */
const credentialTimeout = 10_000;

/** What will not work, or not safely, each with its mend (docs/contract.md#ping). Sends nothing, writes nothing, and never rejects. */
export async function diagnose(patient: Patient, { production = true }: DiagnoseOptions = {}): Promise<readonly Finding[]> {
  const [answered, credentials, ofCustomers] = await Promise.all([ping(patient.parts), credentialFindings(patient), customerFindings(patient)]);
  return [
    ...fraudFindings(patient),
    ...storeFindings(answered, patient, production),
    ...credentials,
    ...callbackFindings(answered, patient, production),
    ...ofCustomers,
    ...receiptFindings(patient, production),
    ...developmentFindings(patient, production),
  ];
}

function fraudFindings({ parts: { settings } }: Patient): Finding[] {
  const open = settings.countries === "all";
  const unbounded = settings.policy.limits.spend.length === 0;
  return [
    ...(open
      ? [
          finding(
            unbounded ? "fault" : "warning",
            "countries",
            `messages go to every country${unbounded ? ", and nothing bounds what they cost: open countries are what SMS fraud lives on" : ""}`,
            'name those that your users are in: countries: ["FR", "GB"]',
          ),
        ]
      : []),
    ...(unbounded
      ? [
          finding(
            "warning",
            "policy.limits.spend",
            "the spend ceiling is off",
            'set one: policy: { limits: { spend: [{ amount: 100, per: "day" }] } }, with prices in router()',
          ),
        ]
      : []),
  ];
}

function storeFindings({ ok, store, callbacks }: Ping, { parts: { settings } }: Patient, production: boolean): Finding[] {
  if (!ok) return [finding("fault", "store", `the store does not answer: ${store.fault}`, "start it, or mend the address and credentials of its client")];
  const findings: Finding[] = store.missing.map((missing) => finding("fault", "store", missing.split(": ")[0] as string, missing.split(": ")[1] ?? missing));
  const { settings: told, clock_difference: difference = 0, round_trip: trip = 0 } = store;
  if (store.fault !== undefined) findings.push(finding("note", "store", store.fault, "allow its client to read what the store tells of itself"));
  if (told["maxmemory-policy"] !== undefined && told["maxmemory-policy"] !== "noeviction")
    findings.push(
      finding(
        "fault",
        "store",
        `Redis evicts (maxmemory-policy ${told["maxmemory-policy"]}): when it is full, limits and codes are forgotten`,
        "CONFIG SET maxmemory-policy noeviction",
      ),
    );
  if (told["appendonly"] === "no")
    findings.push(
      finding("warning", "store", "Redis keeps no append-only file: a restart forgets what was counted since the last snapshot", "CONFIG SET appendonly yes"),
    );
  if (told["deployment"] === "standalone")
    findings.push(
      finding(
        "warning",
        "store",
        "MongoDB runs standalone: its driver repeats no write after a lost connection, and no other server takes over",
        "start mongod with --replSet rs0 and call rs.initiate() once: a replica set of one will do",
      ),
    );
  if (Math.abs(difference) > Math.max(settings.clockSkew, 1_000) + trip)
    findings.push(
      finding(
        "fault",
        "clock",
        `the store's clock and this process's differ by ${difference} ms, more than clockSkew allows`,
        "set both by NTP, or raise clockSkew",
      ),
    );
  if (store.kind === "memory")
    findings.push(
      finding(
        production ? "fault" : "note",
        "store",
        "memoryStore forgets everything when the process ends, and shares nothing with another",
        "use redisStore({ client }) or mongoStore({ db })",
      ),
    );
  if ((callbacks.dead ?? 0) > 0)
    findings.push(
      finding(
        "warning",
        "callbacks",
        `${many(callbacks.dead, "callback was", "callbacks were")} given up`,
        "see verifier.deadLetters(), mend the receiver, and verifier.redeliver(letter)",
      ),
    );
  return findings;
}

async function credentialFindings({ parts: { clock }, sender }: Patient): Promise<Finding[]> {
  const { verify } = sender;
  const about = "sender";
  if (verify === undefined) return [finding("note", about, "this sender has no harmless call: its credentials were not tried", "send yourself one message")];
  const abort = new AbortController();
  let words: readonly CredentialWord[];
  try {
    words = await withTimeout(clock, credentialTimeout, () => verify.call(sender, { signal: abort.signal }));
  } catch {
    abort.abort();
    return [finding("note", about, "the carrier did not answer in time: its credentials were not tried", "try again")];
  }
  return words.flatMap(({ name, credentials, reason = "no reason given" }) => {
    if (credentials === "taken") return [];
    if (credentials === "refused") return [finding("fault", about, `${name} refuses the credentials (${reason})`, `take those of ${name}'s console again`)];
    return [finding("note", about, `whether ${name} takes the credentials is not known (${reason})`, "send yourself one message")];
  });
}

function callbackFindings({ callbacks }: Ping, { parts: { settings } }: Patient, production: boolean): Finding[] {
  const findings: Finding[] = [];
  const about = "callbacks";
  if (!settings.deliver && (callbacks.due ?? 0) > 0)
    findings.push(
      finding(
        "fault",
        about,
        `${many(callbacks.due, "callback is", "callbacks are")} due, and this process delivers none (worker: false)`,
        "run npx phoneproof worker, call verifier.flush() from a cron job, or leave worker out",
      ),
    );
  else if (!settings.deliver)
    findings.push(
      finding("note", about, "this process delivers no callbacks (worker: false)", "see to it that npx phoneproof worker or verifier.flush() runs somewhere"),
    );
  if (settings.allowOrigins.length > 0)
    findings.push(
      finding(
        production ? "fault" : "note",
        "callbacks.allowOrigins",
        `callbacks may go to ${settings.allowOrigins.join(", ")} without https or inside your network: whoever may create chooses the URL`,
        "leave allowOrigins out in production",
      ),
    );
  return findings;
}

/** Whether customers, and with them the secrets that sign callbacks, can be had. */
async function customerFindings({ accounts, customers, parts: { settings } }: Patient): Promise<Finding[]> {
  const findings: Finding[] = [];
  if (customers === undefined) {
    try {
      await accounts.webhookSecrets("00000000-0000-4000-8000-000000000000");
    } catch {
      findings.push(finding("fault", "customers", "the customer source does not answer", "mend what customers.find asks; the log says why it fails"));
    }
  }
  if (settings.secrets.length > 1)
    findings.push(finding("note", "secret", "two secrets are in use: callbacks bear two signatures", "drop the previous one when the rotation is over"));
  return findings;
}

function receiptFindings({ sender: { receiptProviders = [] }, parts: { settings } }: Patient, production: boolean): Finding[] {
  const { receiptBase } = settings;
  const about = "receipts.baseUrl";
  if (receiptBase === undefined)
    return receiptProviders.length === 0
      ? []
      : [
          finding(
            "warning",
            "receipts",
            `${receiptProviders.join(", ")} could tell what became of messages, and nobody listens`,
            "set receipts: { baseUrl, sources } and mount verifier.receipts",
          ),
        ];
  const { protocol, hostname } = new URL(receiptBase);
  if (isPrivate(hostname))
    return [finding(production ? "fault" : "note", about, `no carrier reaches ${hostname}`, "set the public address of this app, up to the mount prefix")];
  if (protocol !== "https:")
    return [
      finding(
        production ? "fault" : "note",
        about,
        "receipts come over plain http, so that anyone between can forge those without a signature",
        "set an https address",
      ),
    ];
  return [];
}

/** Names and addresses that are this machine's or this network's own. */
function isPrivate(hostname: string): boolean {
  return /^(localhost|.*\.(local|internal|localhost)|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|0\.|\[(::1|f[cde]))/i.test(hostname);
}

function developmentFindings({ parts: { settings }, customers = [] }: Patient, production: boolean): Finding[] {
  const level = production ? "fault" : "note";
  const findings: Finding[] = [];
  if ([...settings.secrets, settings.pepper ?? settings.secrets[0] ?? ""].some(isGuessable))
    findings.push(
      finding(
        level,
        "secret",
        "secret or pepper is a made-up value: whoever guesses it can compute codes from what is stored",
        "make one: openssl rand -base64 32",
      ),
    );
  const guessable = customers.filter(({ keys }) => keys.some((key) => !key.startsWith("sha256:") && isGuessable(key))).length;
  if (guessable > 0)
    findings.push(
      finding(
        level,
        "customers",
        `${many(guessable, "customer has", "customers have")} an API key that is a made-up value`,
        "make keys with generateApiKey(), and configure their digests",
      ),
    );
  const known = [...settings.testNumbers.values()].filter((entry) => entry?.code !== undefined).length;
  if (known > 0)
    findings.push(
      finding(
        "warning",
        "testNumbers",
        `${many(known, "test number has", "test numbers have")} a fixed code: whoever knows it passes for their owner`,
        "keep them to those that app review needs",
      ),
    );
  return findings;
}

function many(count: number | undefined, one: string, more: string): string {
  return `${count ?? 0} ${count === 1 ? one : more}`;
}

function finding(level: Finding["level"], about: string, message: string, mend: string): Finding {
  return { level, about, message, mend };
}
