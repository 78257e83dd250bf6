#!/usr/bin/env node
import { constants } from "node:os";
import { version } from "../../package.json";
import { readCommand } from "./command.js";
import { runCustomers } from "./customers.js";
import { runDoctor } from "./doctor.js";
import { runOperator } from "./operators/run.js";
import { runServe } from "./serve/run.js";
import { runWorker } from "./worker.js";

const out = (text: string) => void process.stdout.write(text);
const err = (text: string) => void process.stderr.write(text);

let unwritten: Error | undefined;
process.stdout.on("error", (error) => {
  unwritten ??= error;
});
process.stderr.on("error", () => undefined);

// Clients that a module opened would keep the process alive, and are no longer needed. Pending output is written
// first.
const exit = (code: number) => process.stdout.write("", () => process.exit(code));

/** For servers: what reads the log may hang. */
const exitSoon = (code: number) => {
  exit(code);
  setTimeout(() => process.exit(code), 1_000);
};

/** For commands whose output is their result: a key that no one could read is lost. */
const exitWritten = (code: number) =>
  process.stdout.write("", () => {
    if (unwritten !== undefined) err(`phoneproof: the output was cut off: ${unwritten.message}\n`);
    exit(code === 0 && unwritten !== undefined ? 1 : code);
  });

const command = readCommand(process.argv.slice(2), process.env);

if (command.kind === "help") {
  out(command.text);
} else if (command.kind === "error") {
  err(`phoneproof: ${command.message}\n\n${command.usage}`);
  process.exitCode = 2;
} else if (command.kind === "version") {
  out(`${version}\n`);
} else if (command.kind === "operator") {
  exitWritten(await runOperator(command.settings, { out, err }));
} else if (command.kind === "customers") {
  exitWritten(await runCustomers(command.settings, { out, err }));
} else if (command.kind === "worker") {
  const stopping = new AbortController();
  process.once("SIGINT", () => stopping.abort());
  process.once("SIGTERM", () => stopping.abort());
  exitSoon(await runWorker(command.settings, { out, err }, stopping.signal));
} else if (command.kind === "serve") {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // The exit code of a process ended by the signal. The first process of a container has no default handler for it.
    process.on(signal, () => (stopping.signal.aborted ? process.exit(128 + constants.signals[signal]) : stopping.abort()));
  }
  exitSoon(await runServe(command.settings, { out, err }, stopping.signal));
} else if (command.kind === "doctor") {
  exitWritten(await runDoctor(command.settings, { out, err }));
} else if (process.env.NODE_ENV === "production") {
  err(
    "phoneproof: dev shows every code and the API key to whoever opens its page, and NODE_ENV is production. Unset NODE_ENV to try it on your own machine; in production use phoneproof serve, or mount createVerifier in your app.\n",
  );
  process.exitCode = 1;
} else {
  try {
    // Imported late, so that help and usage errors are fast.
    const { startDev } = await import("./start.js");
    const starting = startDev(command.settings, { out, err });
    const stop = () =>
      void starting.then(
        (dev) => dev.close(),
        () => undefined,
      );
    process.once("SIGINT", stop);
    process.once("SIGTERM", stop);
    // The reader of the output has exited (`| head`), so the messages would no longer be visible.
    process.stdout.once("error", stop);
    await starting;
  } catch (error) {
    // A client that waits to reconnect would keep the process alive for a while.
    process.stderr.write(`phoneproof: ${(error as Error).message}\n`, () => process.exit(1));
  }
}
