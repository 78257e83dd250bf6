import { storeContract } from "../../src/testing/store-contract.js";

/** The contract of stores with 50 racers: for every client and library. */
export const sentences = storeContract({ racers: 50 });

/** The races with so many, too: who races meets at the server, so one client of it is enough. */
export function withRacers(many: number): typeof sentences {
  return [...sentences, ...storeContract({ racers: many }).filter(({ name }) => !sentences.some((sentence) => sentence.name === name))];
}
