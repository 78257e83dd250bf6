import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const ci = Boolean(process.env.CI);

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
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/support/watch-logs.ts"],
    // Real servers, browsers and other runtimes start inside tests and hooks, on machines with two loaded cores: limits only end what hangs.
    testTimeout: 240_000,
    // Most of what tests do is to wait for these: as many as cores would leave half of each idle.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    hookTimeout: 480_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ci ? ["default", "json"] : ["default"],
    outputFile: { json: "test-results/report.json" },
  },
});
