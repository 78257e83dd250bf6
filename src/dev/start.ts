import { createServer, type Server } from "node:http";
import { nodeHandler } from "../../adapters/http/node.js";
import { consoleSender } from "../../adapters/sms/console.js";
import { createVerifier } from "../create-verifier.js";
import type { SmsSender } from "../ports/sms-sender.js";
import { curls } from "./curl.js";
import { listen, listenFault, urlOf } from "./listen.js";
import { createMessages } from "./messages.js";
import { carrierIdOf, devSender } from "./sender.js";
import { devListener, isLoopback } from "./server.js";
import { createSession } from "./session.js";
import type { DevSettings } from "./settings.js";
import { type OpenStore, openStore } from "./store.js";

/** Where the demo writes. */
export interface DevOutput {
  /** The standard output. */
  readonly out: (text: string) => void;
  /** The standard error. */
  readonly err: (text: string) => void;
}

/** The demo as it runs. */
export interface Dev {
  /** Base address, without a slash at its end. */
  readonly url: string;
  /** Ends every connection, the event streams included, and lets go of the port. */
  close(): Promise<void>;
}

/** The port to begin with when none was asked for, and how many after it are tried. */
const firstPort = 3000;
const portsTried = 100;

/**
 * Starts the service with its store, prints how to call it, and shows every message.
 *
 * @throws Error when the store cannot be used or no port could be listened on; the message names the mend.
 */
export async function startDev(settings: DevSettings, output: DevOutput): Promise<Dev> {
  const opened = await openStore(settings.store);
  try {
    return await serve(settings, opened, output);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function serve(settings: DevSettings, opened: OpenStore, { out, err }: DevOutput): Promise<Dev> {
  const messages = createMessages();
  const session = createSession(settings);
  const print = settings.json ? jsonSender(out) : consoleSender({ write: out });
  const verifier = createVerifier({
    store: opened.store,
    sender: devSender(
      settings,
      async (message, outcome, context) => {
        const { to, text, code, authentication_uuid, attempt } = message;
        messages.add({ to, text, code, authentication_uuid, attempt, outcome, at: Date.now() });
        await print.send(message, context);
      },
      (line) => err(`${line}\n`),
    ),
    secret: settings.secret,
    countries: "all",
    customers: [{ customer_uuid: settings.customer_uuid, keys: [settings.api_key] }],
    policy: { lifetime: settings.lifetime, retryCooldowns: settings.cooldown },
    message: { domain: "localhost" },
    logger: { info() {}, warn: (_, message) => err(`${message}\n`), error: (fields, message) => err(`${message} ${JSON.stringify(fields)}\n`) },
  });
  const server = createServer(
    devListener({
      api: nodeHandler(verifier),
      session,
      messages,
      settle: (name, status) => verifier.settleReceipts([{ ...carrierIdOf(name), status }]),
      checkHost: isLoopback(settings.host),
    }),
  );
  const url = urlOf(settings.host, await listenSomewhere(server, settings));

  if (settings.json) out(`${JSON.stringify({ type: "ready", url, api_key: settings.api_key, customer_uuid: settings.customer_uuid })}\n`);
  (settings.json ? err : out)(banner(url, settings, opened.name));
  if (!isLoopback(settings.host)) err(`Warning: whoever reaches ${url} reads every code and the API key. Stop it when you are done.\n`);

  return {
    url,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      messages.close();
      server.closeAllConnections();
      await closed;
      await verifier.close();
      await opened.close();
    },
  };
}

/** One JSON object a line for each message: `{"type":"sms","to","text","code","authentication_uuid"}`. */
function jsonSender(out: (text: string) => void): SmsSender {
  return {
    async send({ to, text, code, authentication_uuid }) {
      out(`${JSON.stringify({ type: "sms", to, text, code, authentication_uuid })}\n`);
      return { outcome: "accepted" };
    },
  };
}

function banner(url: string, settings: DevSettings, store: string): string {
  const commands = curls(url, settings).map(({ title, command }) => `# ${title}\n${command}\n`);
  return [
    "",
    `phoneproof is running on this machine, with ${store}. ${
      settings.carrier === undefined
        ? "Nothing is sent to anyone: messages are shown here and on the page."
        : `Messages are really sent, by ${settings.carrier.name} and at its price, and shown here and on the page too.`
    }`,
    "",
    `  Page           ${url}/`,
    `  API key        ${settings.api_key}`,
    `  Customer UUID  ${settings.customer_uuid}`,
    "",
    ...(settings.store !== undefined && settings.unset.length > 0
      ? [`To share what is stored with other processes, or with the next start, set alike in each: ${settings.unset.join(", ")}.`, ""]
      : []),
    ...commands,
    "Ctrl+C stops it.",
    "",
    "",
  ].join("\n");
}

/** Listens on the port asked for, or on the first free one from 3000 on; answers the port. */
async function listenSomewhere(server: Server, { host, port }: DevSettings): Promise<number> {
  const last = port ?? firstPort + portsTried;
  for (let candidate = port ?? firstPort; ; candidate++) {
    try {
      return await listen(server, host, candidate);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || candidate >= last) throw listenFault(error, host, candidate);
    }
  }
}
