import { version } from "../../package.json";
import { aborted } from "./aborted.js";
import type { Environment } from "./carriers.js";
import type { Command } from "./command.js";
import { runCustomers } from "./customers.js";
import { runDoctor } from "./doctor.js";
import { runOperator } from "./operators/run.js";
import { runServe } from "./serve/run.js";
import type { DevSettings } from "./settings.js";
import type { DevOutput } from "./start.js";
import { runWorker } from "./worker.js";

/** Whether a command runs until it is stopped. */
export function runsUntilStopped({ kind }: Command): boolean {
  return kind === "dev" || kind === "serve" || kind === "worker";
}

/**
 * Runs a command to its end; a server, until `stop`.
 *
 * @returns The exit code. Clients that a module opened are still open.
 */
export async function runCommand(command: Command, env: Environment, output: DevOutput, stop: AbortSignal): Promise<number> {
  switch (command.kind) {
    case "help":
      output.out(command.text);
      return 0;
    case "version":
      output.out(`${version}\n`);
      return 0;
    case "error":
      output.err(`phoneproof: ${command.message}\n\n${command.usage}`);
      return 2;
    case "operator":
      return runOperator(command.settings, output);
    case "customers":
      return runCustomers(command.settings, output);
    case "doctor":
      return runDoctor(command.settings, output);
    case "worker":
      return runWorker(command.settings, output, stop);
    case "serve":
      return runServe(command.settings, output, stop);
    case "dev":
      return runDev(command.settings, env, output, stop);
  }
}

async function runDev(settings: DevSettings, env: Environment, output: DevOutput, stop: AbortSignal): Promise<number> {
  if (env["NODE_ENV"] === "production") {
    output.err(
      "phoneproof: dev shows every code and the API key to whoever opens its page, and NODE_ENV is production. Unset NODE_ENV to try it on your own machine; in production use phoneproof serve, or mount createVerifier in your app.\n",
    );
    return 1;
  }
  try {
    // Imported late, so that help and usage errors are fast.
    const { startDev } = await import("./start.js");
    const dev = await startDev(settings, output);
    await aborted(stop);
    await dev.close();
    return 0;
  } catch (error) {
    output.err(`phoneproof: ${(error as Error).message}\n`);
    return 1;
  }
}
