import { consoleSender } from "phoneproof/senders/console";
import { createService } from "./service.js";

consoleSender();
const { fetch } = createService({ allowOrigins: Deno.args });
Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(`http://127.0.0.1:${port}`) }, fetch);
