import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, so that it can be stopped without cutting off what is under way. */
export interface Connections {
  /** The answer under way on this connection. */
  answerOn(socket: Socket): ServerResponse | undefined;
  /** Whether the body of the last request on this connection is still coming; its answer may be over. */
  isReading(socket: Socket): boolean;
  /** From now on each answer ends its connection: clients go elsewhere with their next request. */
  leave(): void;
  /** Takes no more connections, closes those on which no request is under way, and waits for the others. Answers how many requests it cut off once `deadline` was aborted. */
  stop(deadline: AbortSignal): Promise<number>;
}

/** Follows the connections of a server that does not listen yet. */
export function followConnections(server: Server): Connections {
  /** With the last request on each. */
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
