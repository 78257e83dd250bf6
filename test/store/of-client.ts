import { storeContract } from "../../src/testing/store-contract.js";

/** Cases that take long on a server and do not depend on its client. */
const ofServer =
  /^(window: (a limit of 1,000|a claim without a limit|if a rejection reports)|delete: removes thousands|commit: a repeated write is done after up to fifteen)/;

/** The store contract for a further client of a server: what it sends and receives, with few racers. */
export const ofClient = storeContract({ racers: 10 }).filter(({ name }) => !ofServer.test(name));
