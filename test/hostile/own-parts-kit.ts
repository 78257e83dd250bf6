import { createVerifier, type Logger, type SendOutcome, type SmsSender, type Store, type Verifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";

export const number = "+33612345678";

/** A verifier with parts of its own, the messages that were handed over, and its log as text. */
export function own(options: Partial<VerifierOptions> = {}) {
  const codes: string[] = [];
  const lines: string[] = [];
  const log = (facts: Record<string, unknown>, message: string) => void lines.push(`${message} ${JSON.stringify(facts)}`);
  const logger: Logger = { info: () => undefined, warn: log, error: log };
  const sender = senderOf(async (code) => {
    codes.push(code);
    return { outcome: "accepted" };
  });
  const verifier: Verifier = createVerifier({
    store: memoryStore(),
    sender,
    secret: "own-parts-of-users-0123456789abcdef!",
    countries: ["FR"],
    logger,
    ...options,
  });
  return { verifier, codes, lines };
}

export const senderOf = (send: (code: string) => Promise<SendOutcome>): SmsSender => ({ send: ({ code }) => send(code) });

/** A correct store, with one method replaced, as in a program without types. */
export function storeBut(change: Readonly<Record<string, () => Promise<unknown>>>): Store {
  const right = memoryStore();
  return new Proxy(right, {
    get: (store, name) => {
      if (typeof name === "string" && name in change) return change[name];
      const value: unknown = Reflect.get(store, name);
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}

/** What a library with drafts throws when a draft is used too late: looking at it throws too. */
export function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** The code of the error that a call rejects with, or its text. */
export async function codeOf(call: () => Promise<unknown>): Promise<string> {
  try {
    return `no error: ${JSON.stringify(await call())}`;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}
