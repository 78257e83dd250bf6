import { createServer, type RequestListener, type Server } from "node:http";
import { nodeHandler } from "../../adapters/http/node.js";
import { memoryStore } from "../../adapters/store/memory/index.js";
import { createVerifier, type Verifier } from "../create-verifier.js";
import type { SpamRule } from "../domain/spam.js";
import { createCallbacks } from "./demo/callbacks.js";
import { watchCalls } from "./demo/calls.js";
import { curls } from "./demo/curl.js";
import { createFeed } from "./demo/feed.js";
import { createMessages } from "./demo/messages.js";
import { takeReceipt } from "./demo/receipts.js";
import { devListener, type Taker } from "./demo/server.js";
import { createSession } from "./demo/session.js";
import { jsonTerminal, wordsTerminal } from "./demo/terminal.js";
import { firstDayHint } from "./first-day.js";
import { isLoopback } from "./hosts.js";
import { type DevIdentity, identityIn } from "./identity.js";
import { listen, listenError, urlOf } from "./listen.js";
import { carrierIdOf, devSender } from "./sender.js";
import type { DevSettings } from "./settings.js";
import { type OpenStore, openPlace } from "./store.js";

/** The demo's output. */
export interface DevOutput {
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Writes to standard error. */
  readonly err: (text: string) => void;
}

/** The first port to try by default, and how many after it are tried. */
const firstPort = 3000;
const portsTried = 100;

/**
 * Starts the service with its store, prints how to call it, and shows every message.
 *
 * @throws Error if the store cannot be used or no port is available. The message names the fix.
 */
export async function startDev(settings: DevSettings, output: DevOutput) {
  const opened = await openPlace(settings.place, (line) => output.err(`${line}\n`));
  try {
    // Processes that share a server have their identity in the environment.
    const identity = await identityIn(isServer(settings) ? memoryStore() : opened.store, settings.given);
    return await serve(settings, identity, opened, output);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function serve(settings: DevSettings, identity: DevIdentity, opened: OpenStore, { out, err }: DevOutput) {
  // The verifier needs the address for its callbacks, so the port comes first.
  let listener: RequestListener = (_, response) => void response.writeHead(503).end();
  const server = createServer((request, response) => listener(request, response));
  const port = await listenSomewhere(server, settings);
  const url = urlOf(settings.host, port);
  const session = createSession(identity, urlOf(reachable(settings.host), port), settings.carrier?.name);
  const feed = createFeed();
  const messages = createMessages(feed);
  const terminal = (settings.json ? jsonTerminal : wordsTerminal)(out);
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    feed.close();
    server.closeAllConnections();
    await closed;
  };

  let verifier: Verifier;
  try {
    const secrets = async () => (await Promise.all([session, session.hasty].map(({ customer_uuid }) => verifier.webhookSecrets(customer_uuid)))).flat();
    const callbacks = createCallbacks(secrets, (callback) => {
      feed.tell("callback", `${callback.authentication_uuid}/${callback.sequence}`, callback);
      terminal.callback(callback);
    });
    verifier = createVerifier({
      store: opened.store,
      sender: devSender(
        settings,
        async (message, outcome, context) => {
          const { to, text, code, authentication_uuid, attempt } = message;
          messages.add({ to, text, code, authentication_uuid, attempt, outcome, at: Date.now() });
          await terminal.sms.send(message, context);
        },
        (line) => err(`${line}\n`),
      ),
      secret: identity.secret,
      countries: "all",
      customers: [
        { customer_uuid: session.customer_uuid, keys: [session.api_key] },
        { customer_uuid: session.hasty.customer_uuid, keys: [session.hasty.api_key], policy: { lifetime: session.hasty.lifetime } },
      ],
      policy: { lifetime: settings.lifetime, retryCooldowns: settings.cooldown },
      spamRules: [spamRule(session.spam_number)],
      message: { domain: "localhost" },
      callbacks: { allowOrigins: [new URL(session.callback_url).origin] },
      onEvent: (event) => {
        if (event.type === "callback") callbacks.heard(event);
      },
      logger: { info() {}, warn: (_, message) => err(`${message}\n`), error: (fields, message) => err(`${message} ${JSON.stringify(fields)}\n`) },
    });
    const api = watchCalls(verifier, (call) => {
      feed.tell("call", call.id, call);
      terminal.call(call);
      const { status, authentication_uuid } = call.answer;
      if (status !== "spam_detected") return;
      const of = { customer_uuid: identity.customer_uuid, authentication_uuid: String(authentication_uuid) };
      void firstDayHint(verifier, of).then((hint) => hint && terminal.hint(hint));
    });
    listener = devListener({
      api: nodeHandler(api),
      session,
      feed,
      takers: new Map<string, Taker>([
        ["/dev/receipts", (request) => takeReceipt(request, messages, (name, status) => verifier.settleReceipts([{ ...carrierIdOf(name), status }]))],
        ["/dev/callbacks", callbacks.take],
      ]),
      host: settings.host,
    });
  } catch (error) {
    await close();
    throw error;
  }

  if (settings.json) out(`${JSON.stringify({ type: "ready", url, api_key: identity.api_key, customer_uuid: identity.customer_uuid })}\n`);
  (settings.json ? err : out)(banner(url, settings, identity, opened.name));
  if (!isLoopback(settings.host)) err(`Warning: whoever reaches ${url} reads every code and the API key. Stop it when you are done.\n`);

  return {
    /** Base address, without a trailing slash. */
    url,
    /** Ends every connection, including event streams, and releases the port. */
    async close() {
      await close();
      await verifier.close();
      await opened.close();
    },
  };
}

function isServer({ place }: DevSettings): boolean {
  return "driver" in place;
}

/** A wildcard address is reached through loopback. */
function reachable(host: string): string {
  return { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
}

/** Flags one number, to demonstrate the response. */
function spamRule(number: string): SpamRule {
  return {
    name: "demo",
    judge: ({ phone_number }) =>
      phone_number === number ? { reason: "The demo flags this number, so that you can see the response to a flagged number." } : undefined,
  };
}

function banner(url: string, settings: DevSettings, identity: DevIdentity, store: string): string {
  const commands = curls(url, identity).map(({ title, command }) => `# ${title}\n${command}\n`);
  return [
    "",
    `phoneproof is running on this machine, with ${store}. ${
      settings.carrier === undefined
        ? "Nothing is sent to anyone: messages are shown here and on the page."
        : `Messages are really sent, by ${settings.carrier.name} and at its price, and shown here and on the page too.`
    }`,
    "",
    `  Page           ${url}/`,
    `  API key        ${identity.api_key}`,
    `  Customer UUID  ${identity.customer_uuid}`,
    "",
    ...(isServer(settings) && settings.unset.length > 0
      ? [`To share stored data with other processes, or with the next start, set the same in each: ${settings.unset.join(", ")}.`, ""]
      : []),
    ...commands,
    "Ctrl+C stops it.",
    "",
    "",
  ].join("\n");
}

/** Listens on the requested port, or on the first free one from 3000 on. Returns the port. */
async function listenSomewhere(server: Server, { host, port }: DevSettings): Promise<number> {
  const last = port ?? firstPort + portsTried;
  for (let candidate = port ?? firstPort; ; candidate++) {
    try {
      return await listen(server, host, candidate);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || candidate >= last) throw listenError(error, host, candidate);
    }
  }
}
