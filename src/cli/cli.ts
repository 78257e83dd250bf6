#!/usr/bin/env node
import { readCommand, usage } from "./command.js";
import { runCustomers } from "./customers.js";
import { runDoctor } from "./doctor.js";
import { runServe } from "./serve/run.js";
import { runWorker } from "./worker.js";

const out = (text: string) => void process.stdout.write(text);
const err = (text: string) => void process.stderr.write(text);

const command = readCommand(process.argv.slice(2), process.env);

if (command.kind === "help") {
  out(usage);
} else if (command.kind === "fault") {
  err(`phoneproof: ${command.message}\n\n${usage}`);
  process.exitCode = 2;
} else if (command.kind === "customers") {
  const code = await runCustomers(command.settings, { out, err });
  process.stdout.write("", () => process.exit(code));
} else if (command.kind === "worker") {
  const stopping = new AbortController();
  process.once("SIGINT", () => stopping.abort());
  process.once("SIGTERM", () => stopping.abort());
  const code = await runWorker(command.settings, { out, err }, stopping.signal);
  // Clients that the module opened would keep the process alive: they are nobody's now. What was written goes out first.
  process.stdout.write("", () => process.exit(code));
} else if (command.kind === "serve") {
  const stopping = new AbortController();
  for (const [signal, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
  ] as const) {
    // The code is the one of a process that the signal ended. By itself none ends the first process of a container.
    process.on(signal, () => (stopping.signal.aborted ? process.exit(128 + number) : stopping.abort()));
  }
  // Who reads the log has gone: the service goes on.
  process.stdout.on("error", () => undefined);
  const code = await runServe(command.settings, { out, err }, stopping.signal);
  process.stdout.write("", () => process.exit(code));
} else if (command.kind === "doctor") {
  const code = await runDoctor(command.settings, { out, err });
  process.stdout.write("", () => process.exit(code));
} else if (process.env.NODE_ENV === "production") {
  err(
    "phoneproof: dev shows every code and the API key to whoever opens its page, and NODE_ENV is production. Unset NODE_ENV to try it on your own machine; in production use phoneproof serve, or mount createVerifier in your app.\n",
  );
  process.exitCode = 1;
} else {
  try {
    // Imported here, so that the help and the refusals answer at once.
    const { startDev } = await import("./start.js");
    const starting = startDev(command.settings, { out, err });
    const stop = () =>
      void starting.then(
        (dev) => dev.close(),
        () => undefined,
      );
    process.once("SIGINT", stop);
    process.once("SIGTERM", stop);
    // Who reads the output has gone (`| head`): nobody would see the messages any more.
    process.stdout.once("error", stop);
    await starting;
  } catch (error) {
    // A client that waits for its next try to connect would keep the process alive a while.
    process.stderr.write(`phoneproof: ${(error as Error).message}\n`, () => process.exit(1));
  }
}
