import type { Format } from "./built.js";

/** Programs that run `smoke.cjs` against the built package. */
export const smoke: Readonly<Record<Format, string>> = {
  module: `import smoke from "./test/package/smoke.cjs"; await smoke((name) => import(name));`,
  commonjs: `require("./test/package/smoke.cjs")(require).catch((error) => { console.error(error); process.exitCode = 1; });`,
};

/** What it prints. */
export const passed = "pending invalid valid already_validated Mobile invalid_auth_uuid\n";
