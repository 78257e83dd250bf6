import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { run } from "../package/built.js";
import { shipped } from "../support/shipped.js";

test("phoneproof/otp-input is below 29.9 kB minified, and below 12.2 kB gzipped, words of sixteen languages included", async () => {
  const bytes = await shipped(`import "phoneproof/otp-input";`);
  // The bundler does not drop an import without names: package.json declares side effects.
  expect(new TextDecoder().decode(bytes)).toContain("otp-input");
  expect(bytes.length).toBeLessThan(29_900);
  expect(gzipSync(bytes).length).toBeLessThan(12_200);
});

test.each(["module", "commonjs"] as const)("can be imported without a DOM, as %s", async (format) => {
  const load = format === "module" ? `const { otpWords } = await import("phoneproof/otp-input");` : `const { otpWords } = require("phoneproof/otp-input");`;
  expect(await run(format, `${load} console.log(typeof HTMLElement, otpWords.en.label);`)).toBe("undefined Verification code\n");
});
