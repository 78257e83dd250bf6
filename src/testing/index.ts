export type { ContractCase } from "./contract-case.js";
export { fixedClock } from "./fixed-clock.js";
export { type StoreSubject, storeContract } from "./store-contract.js";
