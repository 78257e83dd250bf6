import { aborted } from "./aborted.js";
import type { DevSettings } from "./settings.js";
import type { DevOutput } from "./start.js";

/**
 * Runs the demo until `stop`.
 *
 * @returns The exit code: 0, or 1 if it could not start.
 */
export async function runDev(settings: DevSettings, output: DevOutput, stop: AbortSignal): Promise<number> {
  if (settings.production) {
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
