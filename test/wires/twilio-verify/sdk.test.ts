import { mounts } from "../listen.js";
import { sdkSuite } from "./sdk.js";

for (const [name, mount] of mounts) sdkSuite(name, mount);
