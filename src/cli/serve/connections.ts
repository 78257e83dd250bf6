import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";

/** How long a new connection may take to its first request once the server stops. Milliseconds. */
const firstRequestTime = 250;

export type Connections = ReturnType<typeof followConnections>;

/**
 * Tracks the connections of a server that does not listen yet, so that it can stop without cutting off requests in
 * progress.
 */
export function followConnections(server: Server) {
  /** Each with its last request. */
  const sockets = new Map<Socket, IncomingMessage | undefined>();
  const underWay = new Map<ServerResponse, Socket>();
  let accepted = 0;
  let leaving = false;
  let stopping = false;
  const isBusy = (socket: Socket) => [...underWay.values()].includes(socket);

  server.on("connection", (socket) => {
    accepted++;
    sockets.set(socket, undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.prependListener("request", (request, response) => {
    const { socket } = request;
    sockets.set(socket, request);
    underWay.set(response, socket);
    if (leaving) response.setHeader("connection", "close");
    response.once("close", () => {
      underWay.delete(response);
      // Its headers may have been written before the stop.
      if (stopping && !isBusy(socket)) socket.destroySoon();
    });
  });

  /** From now on each response closes its connection: clients use another server for their next request. */
  const leave = () => {
    leaving = true;
    for (const response of underWay.keys()) if (!response.headersSent) response.setHeader("connection", "close");
  };

  return {
    /** The response in progress on this connection. */
    answerOn: (socket: Socket) => [...underWay].find(([, of]) => of === socket)?.[0],
    /** Whether the body of the last request on this connection is still arriving; its response may have ended. */
    isReading: (socket: Socket) => sockets.get(socket)?.complete === false,
    leave,
    /**
     * Reads what has arrived, accepts no more connections, closes idle ones, and waits for the others. Returns how many
     * requests were cut off when `deadline` was aborted.
     */
    async stop(deadline: AbortSignal) {
      leave();
      // What has arrived is read first: it would be reset. A turn of the event loop accepts one connection and reads the
      // others.
      for (let before = -1; accepted > before && !deadline.aborted; ) {
        before = accepted;
        await nextTurn();
        await nextTurn();
      }
      stopping = true;
      const closed = new Promise((resolve) => server.close(resolve));
      const busy = new Set(underWay.values());
      for (const [socket, last] of sockets) if (!busy.has(socket) && last !== undefined) socket.destroy();
      const closeUnused = () => {
        for (const [socket, last] of sockets) if (last === undefined) socket.destroy();
      };
      const timer = setTimeout(closeUnused, firstRequestTime);
      let cutOff = 0;
      const cut = () => {
        cutOff = underWay.size;
        for (const socket of sockets.keys()) socket.destroy();
      };
      if (deadline.aborted) cut();
      deadline.addEventListener("abort", cut, { once: true });
      await closed;
      clearTimeout(timer);
      deadline.removeEventListener("abort", cut);
      return cutOff;
    },
  };
}
