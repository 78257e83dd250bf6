import { storeContract } from "../../src/testing/store-contract.js";

/** What takes a server long, and does not depend on its client. */
const ofServer =
  /^(window: (a limit of 1,000|a claim without a limit|if a rejection reports)|delete: removes thousands|commit: a repeated write is done after up to fifteen)/;

/** The contract of stores for a further client of a server: what it sends and receives, and a few racers. */
export const ofClient = storeContract({ racers: 10 }).filter(({ name }) => !ofServer.test(name));
