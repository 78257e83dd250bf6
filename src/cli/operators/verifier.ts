import { generateApiKey } from "../../access/accounts.js";
import { createVerifier, type Verifier } from "../../create-verifier.js";
import type { VerifierOptions } from "../../options/types.js";
import type { Store } from "../../ports/store.js";
import { knownIdentity } from "../identity.js";
import { verifierOf } from "../module.js";
import { quietOptions } from "../quiet.js";
import { openPlace } from "../store.js";
import { noSecret, type OperatorSettings } from "./settings.js";

/** What the operators' commands use of a verifier. */
const asked = ["history", "refusals", "unlock", "erase", "stats"] as const;

const inMemory =
  "the module's store is memoryStore: the running app has its own, which no other process can read; use a store that both can reach, such as sqliteStore({ file })";

export interface Opened {
  readonly verifier: Pick<Verifier, (typeof asked)[number]>;
  /** For calls of a verifier that has customers. */
  readonly customer: { readonly customer_uuid?: string };
  close(): Promise<void>;
}

/** Opens the verifier of the module, or one over the store that the settings name. Throws errors that name the fix. */
export async function openVerifier(settings: OperatorSettings, warn: (line: string) => void): Promise<Opened> {
  const { module, place, customer } = settings;
  const named = customer === undefined ? {} : { customer_uuid: customer };
  if (module !== undefined) {
    const verifier = await verifierOf(module, place, warn, [...asked, "ping"], { mustExist: true });
    const { store } = await verifier.ping();
    if (store.kind !== "memory") return { verifier, customer: named, close: () => verifier.close() };
    await verifier.close();
    throw new Error(inMemory);
  }
  const opened = await openPlace(place, warn, { mustExist: true });
  try {
    const kept = settings.secret === undefined ? await knownIdentity(opened.store) : undefined;
    const secret = settings.secret ?? kept?.secret;
    if (secret === undefined) throw new Error(noSecret);
    const customer_uuid = customer ?? kept?.customer_uuid;
    const verifier = await verifierOver(opened.store, { secret, pepper: settings.pepper }, customer_uuid, warn);
    const close = async () => {
      await verifier.close();
      await opened.close();
    };
    return { verifier, customer: customer_uuid === undefined ? {} : { customer_uuid }, close };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** A customer that the store keeps has its own policy, also while it is suspended. */
async function verifierOver(
  store: Store,
  keys: Pick<VerifierOptions, "secret" | "pepper">,
  customer_uuid: string | undefined,
  warn: (line: string) => void,
): Promise<Verifier> {
  const options = { ...keys, ...quietOptions(store, warn) };
  if (customer_uuid === undefined) return createVerifier(options);
  const { customers } = createVerifier({ ...options, customers: "store" });
  const stored = await customers.get({ customer_uuid }).catch((error: { readonly code?: string }) => {
    if (error.code === "account_invalid") return undefined;
    throw error;
  });
  return createVerifier({ ...options, customers: [{ customer_uuid, keys: [generateApiKey().key], policy: stored?.policy }] });
}
