import type { Accounts } from "../access/accounts.js";
import { withTimeout } from "../core/deadline.js";
import { isPublicAddress } from "../domain/ip.js";
import { isGuessable } from "../options/secret.js";
import type { CustomerConfig } from "../options/types.js";
import type { CredentialCheck, SmsSender } from "../ports/sms-sender.js";
import type { Context } from "./context.js";
import { type Ping, ping } from "./ping.js";

/** A problem to fix before users meet it. */
export interface Finding {
  /**
   * `fault`: it does not work, or is unsafe; `warning`: it works, but needs a decision; `note`: it was not checked, or
   * is useful to know.
   */
  readonly level: "fault" | "warning" | "note";
  /** The option or part, for example `countries`. */
  readonly about: string;
  readonly message: string;
  /** How to fix it. */
  readonly fix: string;
}

export interface DiagnoseOptions {
  /** Whether this verifier serves users: development values are then faults instead of notes. Default true. */
  readonly production?: boolean | undefined;
}

/** What is examined: the parts, and the original options. */
export interface Examined {
  readonly context: Context;
  readonly accounts: Accounts;
  readonly sender: SmsSender;
  /** As configured; `undefined`: a custom source. */
  readonly customers: readonly CustomerConfig[] | undefined;
}

/** Whether it applies, and the finding. */
type Check = readonly [applies: boolean, level: Finding["level"], about: string, message: string, fix: string];

/** Timeout for all carriers together, in milliseconds. */
const credentialTimeout = 10_000;

/**
 * Lists what does not work or is unsafe, with a fix for each (docs/contract.md#ping). Sends and writes nothing, and
 * never rejects.
 */
export async function diagnose(examined: Examined, { production = true }: DiagnoseOptions = {}): Promise<readonly Finding[]> {
  const [answered, credentials, ofCustomers] = await Promise.all([ping(examined.context), credentialChecks(examined), customerChecks(examined)]);
  const development = production ? "fault" : "note";
  const checks = [
    ...fraudChecks(examined),
    ...storeChecks(answered, examined, development),
    ...credentials,
    ...senderChecks(examined, development),
    ...routeChecks(examined),
    ...callbackChecks(answered, examined, development),
    ...ofCustomers,
    ...receiptChecks(examined, development),
    ...developmentChecks(examined, development),
  ];
  return checks.flatMap(([applies, level, about, message, fix]) => (applies ? { level, about, message, fix } : []));
}

function fraudChecks({ context: { settings } }: Examined): Check[] {
  const open = settings.countries === "all";
  const unbounded = settings.policy.limits.spend.length === 0;
  const everywhere = "messages go to every country";
  const countries = 'list the countries your users are in: countries: ["FR", "GB"]';
  const ceiling = 'set one: policy: { limits: { spend: [{ amount: 100, per: "day" }] } }, with prices in router()';
  return [
    [open && !unbounded, "warning", "countries", everywhere, countries],
    [open && unbounded, "fault", "countries", `${everywhere}, and nothing limits what they cost: SMS fraud lives on open countries`, countries],
    [unbounded, "warning", "policy.limits.spend", "the spend ceiling is off", ceiling],
    [
      settings.conversion === "unknown",
      "warning",
      "conversion",
      "no one confirms deliveries: the spam rules can only watch for unusual growth, and a slow attack passes",
      'call verifier.confirm when the other server accepts a code, or let it call a hook\'s /confirmed, and set conversion to "reported" or "late"',
    ],
  ];
}

function storeChecks({ ok, store, callbacks }: Ping, { context: { settings } }: Examined, development: "fault" | "note"): Check[] {
  const missing = store.missing.map((missing): Check => [true, "fault", "store", missing.split(": ")[0] as string, missing.split(": ")[1] ?? missing]);
  if (!ok && missing.length > 0) return missing;
  if (!ok) return [[true, "fault", "store", `the store does not respond: ${store.fault}`, "start it, or correct the address and credentials of its client"]];
  const { settings: kept, clock_difference: difference = 0, round_trip: trip = 0, fault = "" } = store;
  const eviction = kept["maxmemory-policy"] ?? "noeviction";
  const dead = callbacks.dead ?? 0;
  return [
    ...missing,
    [fault !== "", "note", "store", fault, "allow the client to read the store's settings"],
    [
      eviction !== "noeviction",
      "fault",
      "store",
      `Redis evicts keys (maxmemory-policy ${eviction}): when it is full, limits and codes are lost`,
      "CONFIG SET maxmemory-policy noeviction",
    ],
    [
      kept["appendonly"] === "no",
      "warning",
      "store",
      "Redis has no append-only file: a restart loses what was counted since the last snapshot",
      "CONFIG SET appendonly yes",
    ],
    [
      kept["deployment"] === "standalone",
      "warning",
      "store",
      "MongoDB runs standalone: its driver does not retry writes after a lost connection, and no other server takes over",
      "start mongod with --replSet rs0 and call rs.initiate() once: a replica set of one is enough",
    ],
    [
      kept["synchronous"] === "OFF",
      "warning",
      "store",
      "SQLite does not wait for the disk (synchronous OFF): a power cut can damage the file",
      "leave option synchronous of sqliteStore out, or set it to NORMAL",
    ],
    [
      kept["journal_mode"] === "memory",
      development,
      "store",
      "this SQLite database is in memory: it is lost when the process ends",
      'name a file: sqliteStore({ file: "phoneproof.db" })',
    ],
    [
      kept["synchronous_commit"] === "off",
      "warning",
      "store",
      "PostgreSQL acknowledges commits before it writes them (synchronous_commit off): a crash loses the last second of what was counted and sent",
      "alter role current_user set synchronous_commit = 'on'",
    ],
    [
      Math.abs(difference) > Math.max(settings.clockSkew, 1_000) + trip,
      "fault",
      "clock",
      `the store's clock and this process's differ by ${difference} ms, more than clockSkew allows`,
      "synchronize both with NTP, or raise clockSkew",
    ],
    [
      store.kind === "memory",
      development,
      "store",
      "memoryStore loses everything when the process ends, and shares nothing with other processes",
      "use sqliteStore({ file }), redisStore({ client }), postgresStore({ pool }) or mongoStore({ db })",
    ],
    [
      dead > 0,
      "warning",
      "callbacks",
      `${many(dead, "callback was", "callbacks were")} given up`,
      "see verifier.deadLetters(), fix the receiver, then call verifier.redeliver(letter)",
    ],
  ];
}

async function credentialChecks({ context: { clock }, sender }: Examined): Promise<Check[]> {
  const { verify } = sender;
  const about = "sender";
  if (verify === undefined) return [[true, "note", about, "this sender cannot check its credentials without sending", "send yourself one message"]];
  const abort = new AbortController();
  let words: readonly CredentialCheck[];
  try {
    words = await withTimeout(clock, credentialTimeout, () => verify.call(sender, { signal: abort.signal }));
  } catch {
    abort.abort();
    return [[true, "note", about, "the carrier did not respond in time, so its credentials were not tried", "try again"]];
  }
  return words.flatMap(({ name, credentials, reason }): Check[] => {
    const unknown =
      reason === undefined
        ? `${name}: its sender cannot check its credentials without sending`
        : `${name} did not say whether the credentials are valid (${reason})`;
    return [
      [
        credentials === "rejected",
        "fault",
        about,
        `${name} rejects the credentials (${reason ?? "no reason given"})`,
        `copy them from ${name}'s console again`,
      ],
      [credentials === "unknown", "note", about, unknown, "send yourself one message"],
    ];
  });
}

function senderChecks({ sender: { sendsNothing = [] } }: Examined, development: "fault" | "note"): Check[] {
  return sendsNothing.map((words): Check => [true, development, "sender", words, "use a carrier's sender (docs/carriers.md)"]);
}

function routeChecks({ sender, context: { settings } }: Examined): Check[] {
  const unserved = settings.countries === "all" ? [] : [...settings.countries].filter((country) => sender.serves?.(country) === false);
  const one = unserved.length === 1;
  const named = unserved.join(", ");
  return [
    [
      unserved.length > 0,
      "fault",
      "router",
      `no route serves ${named}, which countries allows`,
      `add a route for ${one ? "it" : "them"}, or remove ${one ? named : "them"} from countries`,
    ],
  ];
}

function callbackChecks({ callbacks: { due = 0 } }: Ping, { context: { settings } }: Examined, development: "fault" | "note"): Check[] {
  const { allowOrigins, deliver } = settings;
  return [
    [
      !deliver && due > 0,
      "fault",
      "callbacks",
      `${many(due, "callback is", "callbacks are")} due, and this process delivers none (worker: false)`,
      "run npx phoneproof worker, call verifier.flush() from a cron job, or leave worker out",
    ],
    [
      !deliver && due === 0,
      "note",
      "callbacks",
      "this process delivers no callbacks (worker: false)",
      "make sure that npx phoneproof worker or verifier.flush() runs somewhere",
    ],
    [
      allowOrigins.length > 0,
      development,
      "callbacks.allowOrigins",
      `callbacks may go to ${allowOrigins.join(", ")} without https or inside your network: anyone who may create chooses the URL`,
      "leave allowOrigins out in production",
    ],
  ];
}

/** Whether customers, and with them their callback secrets, can be read. */
async function customerChecks({ accounts, customers, context: { settings } }: Examined): Promise<Check[]> {
  const isAnswered = await accounts.webhookSecrets("00000000-0000-4000-8000-000000000000").then(
    () => true,
    () => customers !== undefined,
  );
  return [
    [!isAnswered, "fault", "customers", "the customer source does not respond", "see the log for the error of customers.find"],
    [settings.secrets.length > 1, "note", "secret", "two secrets are in use: callbacks have two signatures", "drop the old one when the rotation is over"],
  ];
}

function receiptChecks({ sender: { receiptProviders = [] }, context: { settings } }: Examined, development: "fault" | "note"): Check[] {
  const { receiptBase } = settings;
  const about = "receipts.baseUrl";
  if (receiptBase === undefined) {
    const message = `${receiptProviders.join(", ")} can report delivery status, but no receipt source is configured`;
    return [[receiptProviders.length > 0, "warning", "receipts", message, "set receipts: { baseUrl, sources } and mount verifier.receipts"]];
  }
  const { protocol, hostname } = new URL(receiptBase);
  const isHidden = isPrivate(hostname);
  const unsigned = "receipts arrive over plain http, so anyone on the way can forge those without a signature";
  return [
    [isHidden, development, about, `no carrier reaches ${hostname}`, "set the public address of this app, up to the mount prefix"],
    [!isHidden && protocol !== "https:", development, about, unsigned, "set an https address"],
  ];
}

/** Whether a host is on this machine or its local network. */
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  const isAddress = /^[\d.]+$|:/.test(address);
  return isAddress ? !isPublicAddress(address) : /^localhost$|\.(local|internal|localhost)$/i.test(hostname);
}

function developmentChecks({ context: { settings }, customers = [] }: Examined, development: "fault" | "note"): Check[] {
  const { pepper, secrets, testNumbers } = settings;
  const guessable = customers.filter(({ keys }) => keys.some((key) => !key.startsWith("sha256:") && isGuessable(key))).length;
  const known = [...testNumbers.values()].filter((entry) => entry?.code !== undefined).length;
  return [
    [
      [...secrets, pepper ?? ""].some((secret) => secret !== "" && isGuessable(secret)),
      development,
      "secret",
      "secret or pepper is a made-up value: anyone who guesses it can compute codes from what is stored",
      "make one: openssl rand -base64 32",
    ],
    [
      guessable > 0,
      development,
      "customers",
      `${many(guessable, "customer has", "customers have")} an API key that is a made-up value`,
      "make keys with generateApiKey(), and configure their digests",
    ],
    [
      known > 0,
      "warning",
      "testNumbers",
      `${many(known, "test number has", "test numbers have")} a fixed code: anyone who knows it passes as the number's owner`,
      "keep only those that app review needs",
    ],
  ];
}

function many(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}
