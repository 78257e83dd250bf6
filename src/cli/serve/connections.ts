import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";

/** How long a new connection may take to its first request once the server stops. Milliseconds. */
const firstRequestTime = 250;

interface Connection {
  last?: IncomingMessage;
  /** Responses in progress: the first is being written, those of pipelined requests wait. */
  readonly underWay: Set<ServerResponse>;
}

export type Connections = ReturnType<typeof followConnections>;

/**
 * Tracks the connections of a server that does not listen yet, so that it can stop without cutting off requests in
 * progress.
 */
export function followConnections(server: Server) {
  const connections = new Map<Socket, Connection>();
  let accepted = 0;
  let leaving = false;
  let stopping = false;
  const underWay = () => [...connections.values()].flatMap((connection) => [...connection.underWay]);

  server.on("connection", (socket) => {
    accepted++;
    const connection: Connection = { underWay: new Set() };
    connections.set(socket, connection);
    socket.once("close", () => {
      connections.delete(socket);
      // Node emits nothing for responses that waited.
      for (const response of connection.underWay) if (response.socket === null) response.emit("close");
    });
  });
  server.prependListener("request", (request, response) => {
    const { socket } = request;
    const connection = connections.get(socket);
    if (connection === undefined) return;
    connection.last = request;
    connection.underWay.add(response);
    if (leaving) response.setHeader("connection", "close");
    response.once("close", () => {
      connection.underWay.delete(response);
      // Its headers may have been written before the stop.
      if (stopping && connection.underWay.size === 0) socket.destroySoon();
    });
  });

  /** From now on each response closes its connection: clients use another server for their next request. */
  const leave = () => {
    leaving = true;
    for (const response of underWay()) if (!response.headersSent) response.setHeader("connection", "close");
  };

  return {
    /** The response in progress on this connection. */
    answerOn: (socket: Socket) => connections.get(socket)?.underWay.values().next().value,
    /** Whether the body of the last request on this connection is still arriving; its response may have ended. */
    isReading: (socket: Socket) => connections.get(socket)?.last?.complete === false,
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
      for (const [socket, { last, underWay }] of connections) if (underWay.size === 0 && last !== undefined) socket.destroy();
      const closeUnused = () => {
        for (const [socket, { last }] of connections) if (last === undefined) socket.destroy();
      };
      const timer = setTimeout(closeUnused, firstRequestTime);
      let cutOff = 0;
      const cut = () => {
        cutOff = underWay().length;
        for (const socket of connections.keys()) socket.destroy();
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
