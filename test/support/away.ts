/** A `verifier.js` for apps in separate processes. Its store fails while the file in the variable `AWAY` exists. */
export const verifierWhoseStoreGoesAway = `
import { existsSync } from "node:fs";
import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";

const here = memoryStore();
const call = (method) => async (...args) => {
  if (existsSync(process.env.AWAY)) throw new Error("the store is away");
  return here[method](...args);
};
const store = Object.fromEntries(["find", "commit", "members", "tally", "lease", "get", "put", "delete"].map((method) => [method, call(method)]));
export const verifier = createVerifier({ store, sender: consoleSender(), secret: process.env.PHONEPROOF_SECRET, countries: ["FR"] });
`;
