import { plainMountings } from "./hosts.js";
import { wireOver } from "./wire-over.js";

// test/nodes.ts runs this file under the other versions of Node too.
for (const mounting of plainMountings) wireOver(mounting);
