import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Board, decodeBoard, encodeBoard, mostCounted, mostHeard, type Post, postsAfter } from "../../src/domain/routing-board.js";

const tally = fc.tuple(fc.nat(), fc.nat()).map(([good, more]) => ({ good, all: good + more }));
const somePost: fc.Arbitrary<Post> = fc.record({
  process: fc.string(),
  heard: fc.array(
    fc.record({
      name: fc.stringMatching(/^[\w-]{1,13}\/\d$/),
      route: fc.stringMatching(/^[\w.:-]{1,64}$/),
      event: fc.constantFrom("validated" as const, "delivered" as const, "undeliverable" as const),
    }),
  ),
  counted: fc.array(
    fc.record({
      country: fc.option(fc.stringMatching(/^[A-Z]{2}$/), { nil: undefined }),
      route: fc.stringMatching(/^[\w.:-]{1,64}$/),
      at: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
      tallies: fc.record({ conversion: tally, handOver: tally, receipts: tally, latency: tally }),
    }),
  ),
});
const empty: Board = { last: 0, posts: [] };
const small = (at: number): Post => ({ process: "p", heard: [{ name: `n/${at}`, route: "a", event: "validated" }], counted: [] });
const posted = (count: number, from = empty) =>
  Array.from({ length: count }, (_, at) => small(at)).reduce((board, post) => decodeBoard(encodeBoard(board, post)), from);

describe("the board on which processes tell each other of their routes", () => {
  it("holds each post as it was told (property)", () => {
    fc.assert(
      fc.property(fc.array(somePost, { maxLength: 5 }), (posts) => {
        const board = posts.reduce((before, post) => decodeBoard(encodeBoard(before, post)), empty);
        expect(board.last).toBe(posts.length);
        expect(board.posts).toEqual(posts.slice(posts.length - board.posts.length));
      }),
    );
  });

  it("shows each reader what it has not seen, and all of it to one that comes new, or came before the board was begun anew", () => {
    const board = posted(5);
    const names = (seen: number) => postsAfter(board, seen).map(({ heard }) => heard[0]?.name);
    expect([names(5), names(3), names(0), names(9)]).toEqual([[], ["n/3", "n/4"], ["n/0", "n/1", "n/2", "n/3", "n/4"], ["n/0", "n/1", "n/2", "n/3", "n/4"]]);
  });

  it("stays below 64 KiB: the oldest posts make way, and their numbers with them", () => {
    const tallies = { good: 123_456, all: 234_567 };
    const long = "r".repeat(64);
    const full: Post = {
      process: "12345678",
      heard: Array.from({ length: mostHeard }, () => ({ name: "01234567-89ab/1", route: long, event: "undeliverable" as const })),
      counted: Array.from({ length: mostCounted }, (_, at) => ({
        country: "FR",
        route: long,
        at: 1_700_000_000_000 + at,
        tallies: { conversion: tallies, handOver: tallies, receipts: tallies, latency: tallies },
      })),
    };
    expect(encodeBoard(empty, full).length, "one post, with the longest names").toBeLessThan(60_000);
    let board = empty;
    for (let at = 0; at < 10; at++) board = decodeBoard(encodeBoard(board, { ...full, counted: full.counted.slice(at) }));
    expect(encodeBoard(board, full).length).toBeLessThanOrEqual(60_000);
    expect([board.last, board.posts.length]).toEqual([10, 1]);
    expect(postsAfter(board, 9)).toEqual([{ ...full, counted: full.counted.slice(9) }]);
    expect(postsAfter(board, 1), "a reader far behind gets what there is").toHaveLength(board.posts.length);
  });

  it("is begun anew where it cannot be read", () => {
    const line = (fields: string) => `[1,["p",[],[[${fields}]]]]`;
    const bad = ["", "null", "{}", "5", '["1"]', "[-1]", "[1,2]", '[1,["p",[],[[]]],3]', '[1,["p",5,[]]]', '[1,["p",[5],[]]]', '[1,["p",["xn/1 a"],[]]]'];
    const counts = ['"FR","a",1', '"FR","a",1,1,1,"1",1,1,1,1,1', '"FR","a",1,-1,1,1,1,1,1,1,1', '"FR","a",1,2,1,1,1,1,1,1,1', '"FR","a",null,1,1,1,1,1,1,1,1'];
    for (const text of [undefined, ...bad, ...counts.map(line)]) {
      expect(decodeBoard(text), String(text)).toEqual(empty);
      expect(decodeBoard(encodeBoard(decodeBoard(text), small(1))).posts).toEqual([small(1)]);
    }
    expect(decodeBoard(line('"FR","a",1,1,1,1,1,1,1,1,1')).posts).toHaveLength(1);
  });
});
