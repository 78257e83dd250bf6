import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, so that it can stop without cutting off requests in progress. */
export interface Connections {
  /** The response in progress on this connection. */
  answerOn(socket: Socket): ServerResponse | undefined;
  /** Whether the body of the last request on this connection is still arriving; its response may have ended. */
  isReading(socket: Socket): boolean;
  /** From now on each response closes its connection: clients use another server for their next request. */
  leave(): void;
  /**
   * Accepts no more connections, closes idle ones, and waits for the others. Returns how many requests were cut off
   * when `deadline` was aborted.
   */
  stop(deadline: AbortSignal): Promise<number>;
}

/** Tracks the connections of a server that does not listen yet. */
export function followConnections(server: Server): Connections {
  /** Each with its last request. */
  const sockets = new Map<Socket, IncomingMessage | undefined>();
  const underWay = new Map<ServerResponse, Socket>();
  let leaving = false;
  let stopping = false;
  const isBusy = (socket: Socket) => [...underWay.values()].includes(socket);

  server.on("connection", (socket) => {
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

  const leave = () => {
    leaving = true;
    for (const response of underWay.keys()) if (!response.headersSent) response.setHeader("connection", "close");
  };

  return {
    answerOn: (socket) => [...underWay].find(([, of]) => of === socket)?.[0],
    isReading: (socket) => sockets.get(socket)?.complete === false,
    leave,
    async stop(deadline) {
      leave();
      stopping = true;
      const closed = new Promise((resolve) => server.close(resolve));
      const busy = new Set(underWay.values());
      for (const socket of sockets.keys()) if (!busy.has(socket)) socket.destroy();
      let cutOff = 0;
      const cut = () => {
        cutOff = underWay.size;
        for (const socket of sockets.keys()) socket.destroy();
      };
      if (deadline.aborted) cut();
      deadline.addEventListener("abort", cut, { once: true });
      await closed;
      deadline.removeEventListener("abort", cut);
      return cutOff;
    },
  };
}
