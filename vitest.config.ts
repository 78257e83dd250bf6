import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { placeOf, type Tier, testsOf } from "./test/tiers.js";

const tier = (name: Tier, more: TestProjectInlineConfiguration["test"] = {}): TestProjectInlineConfiguration => ({
  extends: true,
  test: { name, include: testsOf(name), ...more },
});

/** The longest files first: a long one that starts last runs alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => placeOf(one.moduleId) - placeOf(other.moduleId));
  }
}

export default defineConfig({
  plugins: [
    {
      name: "lua-text",
      enforce: "pre",
      async load(id) {
        return id.endsWith(".lua") ? `export default ${JSON.stringify(await readFile(id, "utf8"))};` : undefined;
      },
    },
  ],
  test: {
    // Unit tests wait for nothing.
    projects: [
      tier("unit", { pool: "threads", maxWorkers: availableParallelism(), sequence: { groupOrder: 1 } }),
      tier("contract"),
      tier("package"),
      tier("hostile"),
    ],
    // All files import the same sources: a worker reads them once, and each is compiled once for all runs.
    experimental: { fsModuleCache: true },
    // The demo's page is imported as text.
    css: true,
    isolate: false,
    sequence: { sequencer: LongestFirst },
    setupFiles: ["test/support/watch-logs.ts"],
    // Real servers, browsers and other runtimes start inside tests and hooks, on machines with two loaded cores: limits only end what hangs.
    testTimeout: 240_000,
    // Most of what tests do is to wait for these: as many as cores would leave half of each idle.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    hookTimeout: 480_000,
    // Chromium's renderer itself crashes once in many runs of all tests. A page that crashes it twice fails.
    retry: { count: 1, condition: /(Target|Page) crashed/ },
    expect: { poll: { timeout: 60_000, interval: 100 } },
  },
});
