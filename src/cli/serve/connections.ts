import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export type Connections = ReturnType<typeof followConnections>;

/**
 * Tracks the connections of a server that does not listen yet, so that it can stop without cutting off requests in
 * progress.
 */
export function followConnections(server: Server) {
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
     * Accepts no more connections, closes idle ones, and waits for the others. Returns how many requests were cut off
     * when `deadline` was aborted.
     */
    async stop(deadline: AbortSignal) {
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
