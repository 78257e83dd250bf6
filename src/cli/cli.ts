#!/usr/bin/env node
import { constants } from "node:os";
import { readCommand } from "./command.js";

const err = (text: string) => void process.stderr.write(text);
let unwritten: NodeJS.ErrnoException | null | undefined;
const output = {
  // The callback comes before that of a later write; the event `error` may not.
  out: (text: string) =>
    void process.stdout.write(text, (error) => {
      unwritten ??= error;
    }),
  err,
};

const stopping = new AbortController();
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

const command = readCommand(process.argv.slice(2), process.env);

if (command.server) {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // A second signal exits with the exit code of a process ended by it. The first process of a container has no
    // default handler for it.
    process.on(signal, () => (stopping.signal.aborted ? process.exit(128 + constants.signals[signal]) : stopping.abort()));
  }
}
// The reader of the output has exited (`| head`), so the messages would no longer be visible.
if (command.server === "dev") process.stdout.once("error", () => stopping.abort());

const code = await command.run(output, stopping.signal);

// Clients that a module opened, or that wait to reconnect, would keep the process alive. Pending output is written
// first.
process.stdout.write("", () => {
  // What `serve` writes is a log, and `dev` ends with its reader.
  const isMissed = command.server === "dev" ? unwritten?.code !== "EPIPE" : command.server !== "serve";
  const lost = isMissed && unwritten;
  if (lost) err(`phoneproof: the output was cut off: ${lost.message}\n`);
  process.stderr.write("", () => process.exit(code === 0 && lost ? 1 : code));
});
// What reads a server's log may hang. A key that no one could read is lost, so other commands wait.
if (command.server) setTimeout(() => process.exit(code), 1_000);
