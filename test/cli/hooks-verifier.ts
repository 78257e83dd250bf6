import { inboxSender } from "../../adapters/sms/inbox.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier } from "../../src/create-verifier.js";
import { genericHook, logtoHook } from "../../src/hooks/index.js";

/** A module for `phoneproof serve`: hooks, and a verifier without customers. */
export const sender = inboxSender();
/** @public The command imports it. */
export const verifier = createVerifier({
  store: memoryStore(),
  sender,
  secret: "a secret of the tests, 32 characters",
  countries: ["FR"],
  conversion: "reported",
});
/** @public The command imports it. */
export const hooks = [logtoHook({ token: "the token of Logto" }), genericHook({ token: "another token" })];
