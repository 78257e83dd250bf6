/** The part of a `redis` (node-redis) client that is used here. */
export interface NodeRedisConnection {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  ping(): Promise<unknown>;
  destroy(): void;
  connect(): Promise<unknown>;
}

/**
 * Reconnects a client of `redis` (node-redis) whose connection no longer responds: it waits without limit for the reply
 * to a command that it has sent, so that a connection lost without notice would fail every request from then on. A
 * `PING` is sent every second; if none is answered within `patience`, the client is destroyed and connected again.
 * Call it once, after `connect()`. It ends when you close the client, and keeps no process running.
 *
 * @param patience Milliseconds. Default 1500.
 */
export function reconnectWhenSilent(client: NodeRedisConnection, patience = 1500): void {
  const timer = setInterval(async () => {
    if (!client.isOpen) return clearInterval(timer);
    if (!client.isReady) return;
    const late = setTimeout(() => {
      client.destroy();
      // What it cannot connect to is reported by its event `error`.
      client.connect().catch(() => undefined);
    }, patience);
    await client.ping().catch(() => undefined);
    clearTimeout(late);
  }, 1000);
  timer.unref?.();
}
