export type { AttackFigures, ByRule, HonestFigures, PartySeries, Series } from "../../tools/simulate/ledger.js";
export {
  type Attack,
  type AttackNumbers,
  type Deliveries,
  type Goal,
  type Scenario,
  type ScenarioName,
  type Strain,
  scenarios,
} from "../../tools/simulate/scenario.js";
export { type GoalReport, type SimulationOptions, type SimulationResult, simulate } from "../../tools/simulate/simulate.js";
export type { ContractCase } from "./contract-case.js";
export { type FixedClock, fixedClock } from "./fixed-clock.js";
export { type CarrierBehaviour, type SenderBench, type SenderSubject, senderContract } from "./sender-contract.js";
export { type StoreSubject, storeContract } from "./store-contract.js";
export { createTestVerifier, type TestInbox, type TestVerifier, type TestVerifierOptions } from "./test-verifier.js";
export type { TestCallback } from "./verifier/kept-callbacks.js";
export type { ReceiptDetails } from "./verifier/receipts.js";
