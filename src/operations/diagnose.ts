import type { Accounts } from "../access/accounts.js";
import { withTimeout } from "../core/deadline.js";
import { isPublicAddress } from "../domain/ip.js";
import { synchronous } from "../domain/promises.js";
import { isGuessable } from "../options/secret.js";
import type { CustomerConfig } from "../options/types.js";
import type { CredentialCheck, SmsSender } from "../ports/sms-sender.js";
import type { Context } from "./context.js";
import { type Ping, ping, wordsOf } from "./ping.js";

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

type Level = Finding["level"];

const finding = (level: Level, about: string, message: string, fix: string): Finding => ({ level, about, message, fix });
const fault = finding.bind(undefined, "fault");
const warning = finding.bind(undefined, "warning");
const note = finding.bind(undefined, "note");

/** Timeout for all carriers together, in milliseconds. */
const credentialTimeout = 10_000;

/**
 * Lists what does not work or is unsafe, with a fix for each (docs/contract.md#ping). Sends and writes nothing, and
 * never rejects.
 */
export async function diagnose(examined: Examined, options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
  const { production = true } = options ?? {};
  const [answered, credentials, ofCustomers] = await Promise.all([ping(examined.context), credentialFindings(examined), customerFindings(examined)]);
  const development = production ? "fault" : "note";
  return [
    ...fraudFindings(examined),
    ...storeFindings(answered, examined, development),
    ...credentials,
    ...senderFindings(examined, development),
    ...callbackFindings(answered, examined, development),
    ...ofCustomers,
    ...receiptFindings(examined, development),
    ...developmentFindings(examined, development),
  ];
}

function* fraudFindings({ context: { settings } }: Examined): Generator<Finding> {
  const unbounded = settings.policy.limits.spend.length === 0;
  const everywhere = "messages go to every country";
  const countries = 'list the countries your users are in: countries: ["FR", "GB"]';
  if (settings.countries === "all" && !unbounded) yield warning("countries", everywhere, countries);
  if (settings.countries === "all" && unbounded)
    yield fault("countries", `${everywhere}, and nothing limits what they cost: SMS fraud lives on open countries`, countries);
  const ceiling = 'set one: policy: { limits: { spend: [{ amount: 100, per: "day" }] } }, with prices in router()';
  if (unbounded) yield warning("policy.limits.spend", "the spend ceiling is off", ceiling);
  if (settings.conversion === "unknown")
    yield warning(
      "conversion",
      "no one confirms deliveries: the spam rules can only watch for unusual growth, and a slow attack passes",
      'call verifier.confirm when the other server accepts a code, or let it call a hook\'s /confirmed, and set conversion to "reported" or "late"',
    );
}

function* storeFindings({ ok, store, callbacks }: Ping, { context: { settings } }: Examined, development: Level): Generator<Finding> {
  for (const missing of store.missing) yield fault("store", missing.split(": ")[0] as string, missing.split(": ")[1] ?? missing);
  if (!ok && store.missing.length > 0) return;
  if (!ok) {
    const general = /certificate|_CERT/i.test(store.fault ?? "") ? toTrust : "start it, or correct the address and credentials of its client";
    const { fault: problem, fix = general } = withFix(store.fault ?? "");
    yield fault("store", `the store does not respond: ${problem}`, fix);
    return;
  }
  const { settings: kept, clock_difference: difference = 0, round_trip: trip = 0 } = store;
  if (store.fault)
    yield note("store", store.fault, "let the client read the store's settings; if they take too long to read, see what keeps the server busy or holds a lock");
  const eviction = kept["maxmemory-policy"] ?? "noeviction";
  const evicts = `Redis evicts keys (maxmemory-policy ${eviction}): when it is full, limits and codes are lost`;
  if (eviction !== "noeviction") yield fault("store", evicts, redisSetting("maxmemory-policy noeviction"));
  if (store.kind === "redis" && kept["maxmemory-policy"] === undefined)
    yield note("store", "Redis does not show its settings to this client", "make sure that maxmemory-policy is noeviction, and appendonly yes");
  if (kept["appendonly"] === "no")
    yield warning("store", "Redis has no append-only file: a restart loses what was counted since the last snapshot", redisSetting("appendonly yes"));
  if (kept["deployment"] === "standalone")
    yield warning(
      "store",
      "MongoDB runs standalone: its driver does not retry writes after a lost connection, and no other server takes over",
      "start mongod with --replSet rs0 and call rs.initiate() once: a replica set of one is enough",
    );
  if (kept["synchronous"] === "OFF")
    yield warning(
      "store",
      "SQLite does not wait for the disk (synchronous OFF): a power cut can damage the file",
      "leave option synchronous of sqliteStore out, or set it to NORMAL",
    );
  if (kept["journal_mode"] === "memory")
    yield finding(
      development,
      "store",
      "this SQLite database is in memory: it is lost when the process ends",
      'name a file: sqliteStore({ file: "phoneproof.db" })',
    );
  if (kept["synchronous_commit"] === "off")
    yield warning(
      "store",
      "PostgreSQL acknowledges commits before it writes them (synchronous_commit off): a crash loses the last second of what was counted and sent",
      "run as the store's role: alter role current_user set synchronous_commit = 'on'",
    );
  const drift = `the store's clock and this process's differ by ${difference} ms, more than clockSkew allows`;
  if (Math.abs(difference) > Math.max(settings.clockSkew, 1_000) + trip) yield fault("clock", drift, "synchronize both with NTP, or raise clockSkew");
  if (store.kind === "memory")
    yield finding(
      development,
      "store",
      "memoryStore loses everything when the process ends, and shares nothing with other processes",
      "use sqliteStore({ file }), redisStore({ client }), postgresStore({ pool }) or mongoStore({ db })",
    );
  const { dead = 0 } = callbacks;
  const fix = "see verifier.deadLetters(), fix the receiver, then call verifier.redeliver(letter)";
  if (dead > 0) yield warning("callbacks", `${many(dead, "callback was", "callbacks were")} given up`, fix);
}

const toTrust = "give its client the CA of the server's certificate, or the host name that the certificate is for; renew the certificate if it has expired";

/** Takes the fix off a store's error that ends with one: all of a file, and those whose cause the store knows. */
export function withFix(message: string): { readonly fault: string; readonly fix?: string | undefined } {
  const [, fault = message, fix] =
    /^(sqliteStore: .+|(?:redis|mongo)Store: the server behind option `\w+` .+\)|postgresStore: .+ \(\w{5}\)): (.+)$/.exec(message) ?? [];
  return { fault, fix };
}

/** Set in the running server alone, it would be lost at a restart, and with `appendonly` all data too. */
const redisSetting = (setting: string) => `set ${setting} in redis.conf, and in the running server: CONFIG SET ${setting}`;

async function credentialFindings({ context: { clock }, sender }: Examined): Promise<Finding[]> {
  const { verify } = sender;
  const tryIt = "send yourself one message";
  if (verify === undefined) return [note("sender", "this sender cannot check its credentials without sending", tryIt)];
  const abort = new AbortController();
  let words: readonly CredentialCheck[];
  try {
    words = await withTimeout(clock, credentialTimeout, () => verify.call(sender, { signal: abort.signal }));
  } catch {
    abort.abort();
    return [note("sender", "the carrier did not respond in time, so its credentials were not tried", "try again")];
  }
  return words.flatMap(({ name, credentials, reason }) => {
    if (credentials === "rejected")
      return fault("sender", `${name} rejects the credentials (${reason ?? "no reason given"})`, `copy them from ${name}'s console again`);
    if (credentials !== "unknown") return [];
    if (reason === undefined) return note("sender", `${name}: its sender cannot check its credentials without sending`, tryIt);
    return note("sender", `${name} did not say whether the credentials are valid (${reason})`, tryIt);
  });
}

function* senderFindings({ sender, context: { settings } }: Examined, development: Level): Generator<Finding> {
  for (const words of sender.sendsNothing ?? []) yield finding(development, "sender", words, "use a carrier's sender (docs/carriers.md)");
  const isUnserved = (country: string) => synchronous("sender.serves", sender.serves?.(country)) === false;
  let unserved: readonly string[] = [];
  try {
    if (settings.countries !== "all") unserved = [...settings.countries].filter(isUnserved);
  } catch (error) {
    yield fault("sender", `the sender's serves failed: ${wordsOf(error)}`, "let it return true or false for every country");
  }
  const named = unserved.join(", ");
  const [added, removed] = unserved.length === 1 ? ["it", named] : ["them", "them"];
  if (unserved.length > 0)
    yield fault("router", `no route serves ${named}, which countries allows`, `add a route for ${added}, or remove ${removed} from countries`);
}

function* callbackFindings({ callbacks: { due = 0 } }: Ping, { context: { settings } }: Examined, development: Level): Generator<Finding> {
  const { allowOrigins, deliver } = settings;
  if (!deliver && due > 0)
    yield fault(
      "callbacks",
      `${many(due, "callback is", "callbacks are")} due, and this process delivers none (worker: false)`,
      "run npx phoneproof worker, call verifier.flush() from a cron job, or leave worker out",
    );
  if (!deliver && due === 0)
    yield note("callbacks", "this process delivers no callbacks (worker: false)", "make sure that npx phoneproof worker or verifier.flush() runs somewhere");
  if (allowOrigins.length > 0)
    yield finding(
      development,
      "callbacks.allowOrigins",
      `callbacks may go to ${allowOrigins.join(", ")} without https or inside your network: anyone who may create chooses the URL`,
      "leave allowOrigins out in production",
    );
}

async function customerFindings({ accounts, customers, context: { settings } }: Examined): Promise<Finding[]> {
  // It reads the customers, and with them their callback secrets.
  const isAnswered = await accounts.webhookSecrets("00000000-0000-4000-8000-000000000000").then(
    () => true,
    () => customers !== undefined,
  );
  const silent = fault("customers", "the customer source does not respond", "see the log for the error of customers.find");
  const rotating = note("secret", "two secrets are in use: callbacks have two signatures", "drop the old one when the rotation is over");
  return [...(isAnswered ? [] : [silent]), ...(settings.secrets.length > 1 ? [rotating] : [])];
}

function* receiptFindings({ sender: { receiptProviders = [] }, context: { settings } }: Examined, development: Level): Generator<Finding> {
  const { receiptBase } = settings;
  if (receiptBase === undefined) {
    const message = `${receiptProviders.join(", ")} can report delivery status, but no receipt source is configured`;
    if (receiptProviders.length > 0) yield warning("receipts", message, "set receipts: { baseUrl, sources } and mount verifier.receipts");
    return;
  }
  const { protocol, hostname } = new URL(receiptBase);
  const about = "receipts.baseUrl";
  const unsigned = "receipts arrive over plain http, so anyone on the way can forge those without a signature";
  if (isPrivate(hostname)) yield finding(development, about, `no carrier reaches ${hostname}`, "set the public address of this app, up to the mount prefix");
  else if (protocol !== "https:") yield finding(development, about, unsigned, "set an https address");
}

/** Whether a host is on this machine or its local network. */
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  const isAddress = /^[\d.]+$|:/.test(address);
  return isAddress ? !isPublicAddress(address) : /^localhost$|\.(local|internal|localhost)$/i.test(hostname);
}

function* developmentFindings({ context: { settings }, customers = [] }: Examined, development: Level): Generator<Finding> {
  const { pepper, secrets, testNumbers } = settings;
  if ([...secrets, pepper ?? ""].some((secret) => secret !== "" && isGuessable(secret)))
    yield finding(
      development,
      "secret",
      "secret or pepper is a made-up value: anyone who guesses it can compute codes from what is stored",
      "make one: openssl rand -base64 32",
    );
  const guessable = customers.filter(({ keys }) => keys.some((key) => !key.startsWith("sha256:") && isGuessable(key))).length;
  const madeUp = `${many(guessable, "customer has", "customers have")} an API key that is a made-up value`;
  if (guessable > 0) yield finding(development, "customers", madeUp, "make keys with generateApiKey(), and configure their digests");
  const known = [...testNumbers.values()].filter((entry) => entry?.code !== undefined).length;
  const fixed = `${many(known, "test number has", "test numbers have")} a fixed code: anyone who knows it passes as the number's owner`;
  if (known > 0) yield warning("testNumbers", fixed, "keep only those that app review needs");
}

function many(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}
