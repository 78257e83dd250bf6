import { nextTurn } from "../../kit/turn.js";
import type { Ask } from "./commit.js";
import { faultOf, mangledReply } from "./faults.js";
import togetherScript from "./together.lua";

/** A script keeps all others waiting while it runs, so it stands for no more calls than these, and they hold no more characters; each key and argument counts as 32 more. */
const mostCalls = 32;
const mostText = 64 * 1024;

interface Call {
  readonly keys: string[];
  readonly args: string[];
  resolve(reply: string | Promise<string>): void;
  reject(error: unknown): void;
}

interface Batch {
  readonly calls: Call[];
  text: number;
}

/**
 * What is asked of one script in one turn of the event loop goes to the server as one: what a call costs client, connection and server beside its own work is shared by all that come together.
 * Each is done or fails by itself, in the order in which they came; a reply that is lost is lost for all of them. Only after a turn in which several came: where they come one at a time none waits.
 * For a single server: the keys of several calls share no slot.
 */
export function together(ask: Ask): Ask {
  const open = new Map<string, Batch>();
  let came = 0;
  let isCrowded = false;

  function endTurn(): void {
    isCrowded = came > 1;
    came = 0;
    const all = [...open];
    open.clear();
    for (const [script, { calls }] of all) send(ask, script, calls);
  }

  return (script, keys, args) => {
    if (came++ === 0) nextTurn(endTurn);
    if (!isCrowded) return ask(script, keys, args);
    return new Promise((resolve, reject) => {
      const text = textOf(keys) + textOf(args);
      let batch = open.get(script);
      if (batch !== undefined && (batch.calls.length === mostCalls || batch.text + text > mostText)) {
        send(ask, script, batch.calls);
        batch = undefined;
      }
      if (batch === undefined) open.set(script, (batch = { calls: [], text: 0 }));
      batch.calls.push({ keys, args, resolve, reject });
      batch.text += text;
    });
  };
}

function textOf(words: readonly string[]): number {
  let sum = 32 * words.length;
  for (const word of words) sum += word.length;
  return sum;
}

function send(ask: Ask, script: string, calls: readonly Call[]): void {
  const [only] = calls as [Call];
  if (calls.length === 1) {
    only.resolve(ask(script, only.keys, only.args));
    return;
  }
  const keys: string[] = [];
  const args: string[] = [];
  for (const call of calls) {
    keys.push(...call.keys);
    args.push(String(call.keys.length), String(call.args.length), ...call.args);
  }
  ask(forSeveral(script), keys, args)
    .then((reply) => settle(calls, repliesIn(reply.slice(1), calls.length)))
    .catch((error: unknown) => {
      for (const { reject } of calls) reject(error);
    });
}

function repliesIn(text: string, count: number): string[] {
  try {
    const replies: unknown = JSON.parse(text);
    if (Array.isArray(replies) && replies.length === count) return replies;
  } catch {
    // What the parser says of it holds what was stored.
  }
  throw mangledReply();
}

function settle(calls: readonly Call[], replies: readonly string[]): void {
  for (const [at, reply] of replies.entries()) {
    const { resolve, reject } = calls[at] as Call;
    if (reply.startsWith("~")) reject(faultOf(reply.slice(1)));
    else resolve(reply);
  }
}

const made = new Map<string, string>();

function forSeveral(script: string): string {
  let text = made.get(script);
  if (text === undefined) made.set(script, (text = togetherScript.replace("-- the script", () => script)));
  return text;
}
