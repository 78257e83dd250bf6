import { randomBytes } from "node:crypto";
import { generateApiKey } from "../../src/index.js";

const random = (bytes: number) => randomBytes(bytes).toString("hex");

/** Stand-ins for the variables that the snippets read. */
const standIns: Readonly<Record<string, string>> = {
  NODE_ENV: "development",
  PORT: "0",
  PHONEPROOF_SECRET: randomBytes(32).toString("base64"),
  PHONEPROOF_API_KEY: generateApiKey().key,
  TWILIO_ACCOUNT_SID: `AC${random(16)}`,
  PUBLIC_URL: "https://stand-in.example",
  SUPERTOKENS_URL: "http://127.0.0.1:3567",
  TWILIO_FROM: "+15005550006",
  UPSTASH_REDIS_REST_URL: "https://stand-in.upstash.example",
  SUPABASE_HOOK_SECRET: `v1,whsec_${randomBytes(32).toString("base64")}`,
  WEBHOOK_SECRET: `whsec_${randomBytes(32).toString("base64")}`,
};

/** The variables that a snippet reads: `process.env.X` and `required("X")`. */
export function namesIn(text: string): string[] {
  return [...text.matchAll(/process\.env\.(\w+)|required\("(\w+)"\)/g)].map(([, one, other]) => (one ?? other) as string);
}

/**
 * A value for every variable that the texts read; `more` takes precedence over the stand-ins.
 * Variables that look like keys get random values; all others need a stand-in.
 */
export function environmentFor(texts: readonly string[], more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const environment: Record<string, string> = { ...standIns, ...more };
  for (const name of texts.flatMap(namesIn)) {
    if (environment[name] === undefined && /_(SECRET|TOKEN|KEY|PASSWORD|ID|SID|USERNAME)$/.test(name)) environment[name] = random(20);
  }
  return environment;
}
