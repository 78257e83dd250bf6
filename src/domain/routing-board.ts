import type { Tallies } from "./routing-health.js";

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

/** Characters that a board may have; its oldest posts make way. Processes read it every few seconds. */
const maxLength = 32_768;

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
    const [last, ...posts] = JSON.parse(text ?? "[0]") as [number, ...Parameters<typeof decodePost>[0][]];
    return { last, posts: posts.map(decodePost) };
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

function decodePost([process, heard, counted]: [string, string[], [string, string, number, ...number[]][]]): Post {
  return {
    process,
    heard: heard.map((text) => {
      const [name = "", route = ""] = text.slice(1).split(" ");
      return { name, route, event: events[text.slice(0, 1) as keyof typeof events] };
    }),
    counted: counted.map(([country, route, at, ...numbers]) => {
      const tally = (index: number) => ({ good: numbers[2 * index] ?? 0, all: numbers[2 * index + 1] ?? 0 });
      return {
        country: country || undefined,
        route,
        at,
        tallies: { conversion: tally(0), handOver: tally(1), receipts: tally(2), latency: tally(3) },
      };
    }),
  };
}
