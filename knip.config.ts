import type { KnipConfig } from "knip";
import frameworks from "./test/frameworks/package.json" with { type: "json" };

/** Types, peers, and packages that tests load by a path or from a page's snippet: knip cannot see these being used. */
const unseen = /^(@nestjs\/|@types\/|@playwright\/test$|react|jest$|rxjs$)/;

const config: KnipConfig = {
  workspaces: {
    ".": {
      entry: [
        "src/cli/cli.ts",
        "src/cli/demo/page/*.js",
        "tools/simulate/command/*.{ts,js}",
        "examples/**/*.{js,ts,tsx,mjs}",
        "test/docs/fixtures/*.ts",
        "test/http/fixtures/**/*.ts",
        "test/package/smoke.cjs",
        "test/summary.ts",
        "test/package/projects/**/*.{ts,tsx,js,cjs}",
      ],
      project: ["src/**/*.{ts,js}", "adapters/**/*.ts", "clients/**/*.ts", "tools/**/*.ts", "test/**/*.ts", "*.config.ts"],
      // Declared in test/frameworks, imported from here. One that is no longer imported is a hint, which fails the check.
      ignoreDependencies: ["libsql", ...Object.keys(frameworks.devDependencies).filter((name) => !unseen.test(name))],
    },
    bench: { entry: ["*.{ts,js}"], ignoreDependencies: ["chart.js"] },
  },
  ignore: ["test/package/declarations/**"],
  ignoreBinaries: ["attw", "biome", "knip", "openssl", "perl", "playwright", "prlimit", "prometheus", "publint", "vitepress"],
  ignoreExportsUsedInFile: true,
  ignoreWorkspaces: ["test/frameworks", "tools/check"],
};

export default config;
