import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "./ports.js";

/** A PDU as read by the peer. */
export interface PerlPdu {
  readonly command: string;
  readonly status: number;
  readonly [field: string]: string | number;
}

/** `smpp-peer.pl`, a message centre based on Net::SMPP. */
export interface PerlPeer {
  readonly port: number;
  readonly seen: readonly PerlPdu[];
  of(command: string): readonly PerlPdu[];
  stop(): Promise<void>;
}

const script = fileURLToPath(new URL("smpp-peer.pl", import.meta.url));
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Whether Net::SMPP is installed. If not, prints what is skipped and how to get it; with `CI=true` it throws. */
export function netSmppIsInstalled(suite: string): boolean {
  try {
    execFileSync("perl", ["-MNet::SMPP", "-e", "1"], { stdio: "ignore" });
    return true;
  } catch {
    const message = `Net::SMPP for Perl is missing: ${suite} cannot run. Get it with: apt-get install libnet-smpp-perl`;
    if (process.env["CI"] === "true") throw new Error(message);
    console.warn(`SKIPPED: ${message}`);
    return false;
  }
}

/** @param onPort Default: a free one. */
export async function startPerlPeer(password: string, onPort?: number): Promise<PerlPeer> {
  const port = onPort ?? (await freePort());
  const seen: PerlPdu[] = [];
  // Its warnings are about closed connections, which some tests cause.
  const child = spawn("perl", [script, String(port), password], { stdio: ["ignore", "pipe", "ignore"] });
  running.add(child);
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  void gone.then(() => running.delete(child));
  await new Promise<void>((resolve, reject) => {
    void gone.then(() => reject(new Error(`${script} ended with ${child.exitCode}`)));
    createInterface(child.stdout).on("line", (line) => {
      const pdu = JSON.parse(line) as PerlPdu & { readonly listening?: number };
      if (pdu.listening !== undefined) resolve();
      else if (pdu.command !== undefined) seen.push(pdu);
    });
  });
  return {
    port,
    seen,
    of: (command) => seen.filter((pdu) => pdu.command === command),
    async stop() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
