export type { ContractCase } from "./contract-case.js";
export { type FixedClock, fixedClock } from "./fixed-clock.js";
export { type CarrierBehaviour, type SenderBench, type SenderSubject, senderContract } from "./sender-contract.js";
export { type StoreSubject, storeContract } from "./store-contract.js";
