import { storeContract } from "../../src/testing/store-contract.js";

const all = storeContract({ racers: 50 });

/** The contract of stores for a further client of a server: without what takes longest, a thousand claims one after another that the server alone counts. */
export const sentences = all.filter(({ name }) => name !== "window: a limit of 1,000 is exact");

/** All of it, and the races with so many, too: who races meets at the server, so one client of it is enough. */
export function withRacers(many: number): typeof all {
  return [...all, ...storeContract({ racers: many }).filter(({ name }) => !all.some((sentence) => sentence.name === name))];
}
