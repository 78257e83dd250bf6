import { awkwardMountings } from "./hosts.js";
import { wireOver } from "./wire-over.js";

for (const mounting of awkwardMountings) wireOver(mounting);
