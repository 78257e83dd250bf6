import type { Tallies, Tally } from "./routing-health.js";

/** What became of a message that another process had sent. */
export interface Heard {
  /** The message's name, and the route that took it; neither holds a space. */
  readonly name: string;
  readonly route: string;
  readonly event: "validated" | "delivered" | "undeliverable";
}

/** What a process counted of its own messages since it told last. */
export interface Counted {
  readonly country: string | undefined;
  readonly route: string;
  /** When their stretch of time began, in milliseconds since the epoch. */
  readonly at: number;
  readonly tallies: Tallies;
}

/** What one process tells the others at a time. */
export interface Post {
  readonly process: string;
  readonly heard: readonly Heard[];
  readonly counted: readonly Counted[];
}

/** What the processes told each other last. */
export interface Board {
  /** Number of the newest post; the others are numbered downwards. */
  readonly last: number;
  /** Oldest first. */
  readonly posts: readonly Post[];
}

/** Characters that a board may have, so that a store can hold it; its oldest posts make way. */
const maxLength = 60_000;

/** What a post may hold, so that the posts of several processes fit. The rest waits for the next one. */
export const mostHeard = 200;
export const mostCounted = 150;

/** The posts after number `seen`; all of them where the board was begun anew meanwhile. */
export function postsAfter({ last, posts }: Board, seen: number): readonly Post[] {
  return seen > last ? posts : posts.slice(Math.max(0, posts.length - (last - seen)));
}

const events = { v: "validated", d: "delivered", u: "undeliverable" } as const;

/** The board as it is stored, with one post more. */
export function encodeBoard({ last, posts }: Board, post: Post): string {
  const lines = [...posts, post].map(encodePost);
  let length = lines.reduce((sum, line) => sum + line.length + 1, 32);
  while (length > maxLength && lines.length > 1) length -= (lines.shift() as string).length + 1;
  return `[${[last + 1, ...lines].join(",")}]`;
}

/** What is stored, or an empty board where there is none or none that can be read: nothing hangs on what is lost. */
export function decodeBoard(text: string | undefined): Board {
  try {
    const [last, ...posts] = JSON.parse(text ?? "[0]") as unknown[];
    return { last: count(last), posts: posts.map(decodePost) };
  } catch {
    return { last: 0, posts: [] };
  }
}

function encodePost({ process, heard, counted }: Post): string {
  const lines = counted.map(({ country, route, at, tallies: { conversion: c, handOver: h, receipts: r, latency: l } }) => [
    country ?? "",
    route,
    at,
    ...[c, h, r, l].flatMap(({ good, all }) => [good, all]),
  ]);
  return JSON.stringify([process, heard.map(({ name, route, event }) => `${event.slice(0, 1)}${name} ${route}`), lines]);
}

function decodePost(post: unknown): Post {
  const [process, heard, counted] = list(post);
  return { process: text(process), heard: list(heard).map(decodeHeard), counted: list(counted).map(decodeCounted) };
}

function decodeHeard(line: unknown): Heard {
  const [name, route] = text(line).slice(1).split(" ");
  const event = events[text(line).slice(0, 1) as keyof typeof events];
  if (event === undefined) throw new TypeError("not an event");
  return { name: text(name), route: text(route), event };
}

function decodeCounted(line: unknown): Counted {
  const [country, route, at, ...numbers] = list(line);
  const tally = (index: number): Tally => {
    const [good, all] = [count(numbers[2 * index]), count(numbers[2 * index + 1])];
    if (good > all) throw new TypeError("not a tally");
    return { good, all };
  };
  if (!/^([A-Z]{2})?$/.test(text(country))) throw new TypeError("not a country");
  return {
    country: text(country) || undefined,
    route: text(route),
    at: count(at),
    tallies: { conversion: tally(0), handOver: tally(1), receipts: tally(2), latency: tally(3) },
  };
}

function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("not a list");
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError("not a text");
}

function count(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  throw new TypeError("not a count");
}
