import { storeContract } from "../../src/testing/store-contract.js";

/** The contract of stores with 50 racers: for every client and library. */
export const sentences = storeContract({ racers: 50 });

/** The races with a thousand, too: who races meets at the server, so one client of it is enough. */
export const withThousand = [...sentences, ...storeContract({ racers: 1_000 }).filter(({ name }) => !sentences.some((sentence) => sentence.name === name))];
