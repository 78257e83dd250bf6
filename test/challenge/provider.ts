import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** What a provider knows about a proof that a browser got from it. */
export interface Solved {
  readonly hostname?: string;
  readonly action?: string;
  readonly score?: number;
  readonly siteKey?: string;
  /** The proof has expired. */
  readonly late?: boolean;
}

export interface Provider {
  readonly secret: string;
  /** The documented path. */
  readonly path: string;
  /** The error codes for a late or a used proof. */
  readonly late: string;
  readonly used: string;
}

export const turnstile: Provider = { secret: "0x4AAA-turnstile", path: "/turnstile/v0/siteverify", late: "timeout-or-duplicate", used: "timeout-or-duplicate" };
export const hcaptcha: Provider = { secret: "ES_hcaptcha", path: "/siteverify", late: "expired-input-response", used: "already-seen-response" };
export const recaptcha: Provider = { secret: "6Le-recaptcha", path: "/recaptcha/api/siteverify", late: "timeout-or-duplicate", used: "timeout-or-duplicate" };

/** How a running provider responds instead. */
export type Mood = "fails" | "garbage" | "hangs" | "stalls" | "redirects" | "cut" | { readonly status: number; readonly answer: unknown };

export interface RunningProvider {
  /** The value of `baseUrl`. */
  readonly url: string;
  readonly forms: readonly URLSearchParams[];
  mood: Mood | undefined;
  /** Returns a proof for a solved challenge. */
  solve(solved?: Solved): string;
  close(): Promise<void>;
}

/** A challenge provider that works as documented, on a free loopback port: each proof is valid once. */
export async function startProvider(provider: Provider): Promise<RunningProvider> {
  const issued = new Map<string, Solved>();
  const used = new Set<string>();
  const forms: URLSearchParams[] = [];
  const answer = (form: URLSearchParams) => {
    const refuse = (code: string) => ({ success: false, "error-codes": [code] });
    const proof = form.get("response");
    if (form.get("secret") !== provider.secret) return refuse("invalid-input-secret");
    if (!proof) return refuse("missing-input-response");
    const solved = issued.get(proof);
    if (solved === undefined) return refuse("invalid-input-response");
    if (form.has("sitekey") && form.get("sitekey") !== solved.siteKey) return refuse("sitekey-secret-mismatch");
    if (used.has(proof)) return refuse(provider.used);
    used.add(proof);
    if (solved.late) return refuse(provider.late);
    const { hostname = "example.com", action, score } = solved;
    return { success: true, challenge_ts: "2026-11-21T12:00:00Z", hostname, action, score, "error-codes": [] };
  };
  const server = createServer((request, response) => {
    const send = (status: number, body: string) => void response.writeHead(status, { "content-type": "application/json" }).end(body);
    void readBody(request).then((body) => {
      const form = new URLSearchParams(body);
      forms.push(form);
      const { mood } = running;
      if (request.method !== "POST" || request.url !== provider.path || request.headers["content-type"] !== "application/x-www-form-urlencoded")
        send(404, "{}");
      else if (mood === undefined) send(200, JSON.stringify(answer(form)));
      else if (mood === "fails") send(500, "<html>Internal error</html>");
      else if (mood === "garbage") send(200, "<html>success: true</html>");
      else if (mood === "redirects") response.writeHead(307, { location: `${running.url}/elsewhere` }).end();
      else if (mood === "cut") response.destroy();
      else if (mood === "stalls") response.writeHead(200).write('{"success":');
      else if (mood !== "hangs") send(mood.status, JSON.stringify(mood.answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const running: RunningProvider = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${provider.path.replace(/\/siteverify$/, "")}`,
    forms,
    mood: undefined,
    solve(solved = {}) {
      const proof = `proof/${issued.size}+&=é`;
      issued.set(proof, solved);
      return proof;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return running;
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const part of request.setEncoding("utf8")) body += part;
  return body;
}
