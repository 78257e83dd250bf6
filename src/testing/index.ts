export type { ContractCase } from "./contract-case.js";
export { type FixedClock, fixedClock } from "./fixed-clock.js";
export { type CarrierBehaviour, type SenderBench, type SenderSubject, senderContract } from "./sender-contract.js";
export type { AttackFigures, ByRule, HonestFigures, PartySeries, Series } from "./simulate/ledger.js";
export { type Attack, type AttackNumbers, type Goal, type Scenario, type ScenarioName, type Strain, scenarios } from "./simulate/scenario.js";
export { type GoalReport, type SimulationOptions, type SimulationResult, simulate } from "./simulate.js";
export { type StoreSubject, storeContract } from "./store-contract.js";
