import { type SmppOptions, smppSender } from "../../adapters/sms/smpp/index.js";
import { aMessage, type Peer, password, startPeer, stoppedClock, systemId } from "./smpp.js";

/** A line that a sender logged. */
export interface Line {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

const open: (() => Promise<void>)[] = [];

/** A peer, and a sender for it with a clock that only the test advances. `closeBenches` closes both. */
export async function openBench(change: Partial<SmppOptions> = {}, peerOptions: Parameters<typeof startPeer>[0] = {}) {
  const peer = await startPeer(peerOptions);
  const clock = stoppedClock();
  const log: Line[] = [];
  const line = (level: string) => (fields: Record<string, unknown>, message: string) => void log.push({ level, fields, message });
  const sender = smppSender({
    host: "127.0.0.1",
    port: peer.port,
    systemId,
    password,
    from: "Acme",
    clock,
    logger: { info: line("info"), warn: line("warn"), error: line("error") },
    ...change,
  });
  open.push(async () => {
    await peer.stop();
    const closed = sender.close();
    // Past its drainTimeout, in case something hangs.
    clock.advance(60_000);
    await closed;
  });
  return { peer, clock, log, sender, send: (message = aMessage(), ms?: number) => sender.send(message, clock.context(ms)) };
}

/** For `afterEach`. */
export async function closeBenches(): Promise<void> {
  for (const close of open.splice(0)) await close();
}

/** A peer that `closeBenches` closes. */
export async function openPeer(options: Parameters<typeof startPeer>[0] = {}): Promise<Peer> {
  const peer = await startPeer(options);
  open.push(() => peer.stop());
  return peer;
}
