import { type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Connections } from "./connections.js";

/**
 * Responds to requests that Node's parser rejects (too slow, too large or not HTTP), in the same way as Node, and logs
 * a line with its error code, for example `HPE_INVALID_METHOD`.
 */
export function answerRefused(server: Server, connections: Connections, tell: (line: object) => void): void {
  server.on("clientError", (error: NodeJS.ErrnoException, duplex) => {
    const socket = duplex as Socket;
    const status = statusOf(error.code);
    const response = connections.answerOn(socket);
    if (!socket.writable || error.code === "ECONNRESET") {
      socket.destroy();
    } else if (response !== undefined) {
      // An invalid body: its request is logged when its response ends, and as 499 if the client has hung up.
      if (response.headersSent || error.code === "HPE_INVALID_EOF_STATE") return void socket.destroy();
      response.writeHead(status, { connection: "close", "content-length": 0 }).end();
    } else if (connections.isReading(socket)) {
      // An error after the response, which was already sent and logged.
      socket.destroy();
    } else {
      socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () => socket.destroy());
      // Load balancers open connections ahead of time and send nothing on them.
      if (socket.bytesRead > 0) tell({ type: "request", route: "none", status, fault: error.code ?? "unknown" });
    }
  });
}

function statusOf(code: string | undefined): number {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  return code === "HPE_CHUNK_EXTENSIONS_OVERFLOW" ? 413 : 400;
}
