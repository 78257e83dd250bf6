import { expect, it } from "vitest";
import { withoutNumbers } from "../../src/core/loggers.js";

it.each([
  "+14155552671",
  "+1 (415) 555 - 2671",
  "1/415/555/2671",
  "1_415_555_2671",
  "+1\u00a0415\u2013555\u20132671",
  "%2B1%20415%20555%202671",
  "4-1-5-5-5-5-2-6-7-1",
  "+1 • 415 • 555 • 2671",
])("a number in someone else's text is hidden, however it is written: %s (docs/contract.md#logs)", (written) => {
  const shown = withoutNumbers(`no route to ${written}, sorry`);
  expect(shown).toMatch(/^no route to \D*…, sorry$|^no route to %2B…, sorry$/);
});

it.each([
  "connect ECONNREFUSED 127.0.0.1:5432",
  "connect ECONNREFUSED 10.20.30.40:27017 (3 of 5)",
  "at send (/app/node_modules/redis/dist/index.js:12345:678)",
  "record 018f3b1c-1111-4222-8333-123456789012 is corrupt",
  "HTTP 503 after 1,500 ms",
])("what is no number is shown: %s", (text) => {
  expect(withoutNumbers(text)).toBe(text);
});
