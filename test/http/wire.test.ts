import { plainMountings } from "./hosts.js";
import { wireOver } from "./wire-over.js";

// test/nodes.ts also runs this file under the other versions of Node.
for (const mounting of plainMountings) wireOver(mounting);
