import { afterAll, beforeAll, describe } from "vitest";
import { type NewStore, newStore, postgresServer } from "../support/postgres.js";
import { oddValues } from "./odd-values.js";

const server = await postgresServer("the hostile tests of values on PostgreSQL");
afterAll(() => server?.stop());

const odd = [
  "\u0000",
  "a\u0000b",
  "\ud800",
  "\udc00\ud800",
  "\\u0000",
  '{"a":null}',
  "NULL",
  "{NULL}",
  "'; drop schema phoneproof cascade; --",
  "$1",
  "\\",
  "\ufeff\uffff",
  "👩‍👩‍👧‍👦🏴‍☠️",
  "__proto__",
  "\r\n\t\b\v",
  "\u202e\u0301",
  "x".repeat(60_000),
];

describe.runIf(server)("odd values next to ordinary ones, in one call of PostgreSQL", () => {
  let opened: NewStore;
  beforeAll(async () => {
    opened = await newStore(server);
  });
  afterAll(() => opened?.close());

  oddValues(() => opened.store, odd, [Number.MAX_SAFE_INTEGER, 2 ** 63, 1e300, Number.NaN, 0.5]);
});
