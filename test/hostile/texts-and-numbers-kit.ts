import { type CodeMessage, createVerifier, type Verifier, type VerifierOptions } from "phoneproof";
import { memoryStore } from "phoneproof/memory";

/** A verifier for all countries, and the messages that it handed over. */
export function worldwide(options: Partial<VerifierOptions> = {}): { readonly verifier: Verifier; readonly messages: CodeMessage[] } {
  const messages: CodeMessage[] = [];
  const verifier = createVerifier({
    store: memoryStore(),
    sender: {
      send: async (message) => {
        messages.push(message);
        return { outcome: "accepted" };
      },
    },
    secret: "texts-and-numbers-0123456789abcdef!",
    countries: "all",
    callbacks: { worker: false },
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
    ...options,
  });
  return { verifier, messages };
}

/** What a call of the verifier throws: its code and its message. */
export async function thrownBy(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return `${code}: ${message}`;
  }
  return "nothing";
}
