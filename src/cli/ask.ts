import { createInterface } from "node:readline/promises";

/** Asks a person on standard error, and returns the next line of standard input; `undefined` if it ends without one. */
export async function askPerson(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}
