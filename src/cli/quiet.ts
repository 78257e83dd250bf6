import type { VerifierOptions } from "../options/types.js";
import type { Store } from "../ports/store.js";

/** The options of a verifier that only reads and writes its store, and never sends. `warn` gets what it logs. */
export function quietOptions(store: Store, warn: (line: string) => void) {
  return {
    store,
    sender: { send: async () => ({ outcome: "rejected", reason: "this command sends nothing" }), plan: () => undefined },
    countries: "all",
    callbacks: { worker: false },
    logger: {
      info() {},
      warn: (_, message) => warn(message),
      error: ({ err }, message) => warn(`${message}: ${messageOf(String(err))}`),
    },
  } satisfies Partial<VerifierOptions>;
}

/** The message of an error that is logged as its stack. */
function messageOf(stack: string): string {
  return stack.replace(/^\w+: /, "").replace(/\n {4}at .*/s, "");
}
