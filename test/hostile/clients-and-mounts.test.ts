import { closeSync, openSync } from "node:fs";
import { fetchHandler } from "phoneproof/fetch";
import { createTestVerifier } from "phoneproof/testing";
import { twilioVerify } from "phoneproof/twilio-verify";
import { expect, onTestFinished, test } from "vitest";
import {
  aggregator,
  forgetful,
  hanging,
  namesDeclaredTwice,
  readDocument,
  receiptBench,
  runModule,
  runNode,
  stateWithin,
  withholding,
} from "./clients-and-mounts-kit.js";

test("orval's client of openapi.json compiles: no operation's result has the name of a schema", () => {
  const names = ["openapi.json", "openapi-prelude-v2.json", "openapi-twilio-verify.json"].map((name) => namesDeclaredTwice(readDocument(name)));
  expect(names).toEqual([[], [], []]);
});

test("openapi-twilio-verify.json lists the status of a path that is not properly percent-encoded", async () => {
  const phone = createTestVerifier();
  onTestFinished(() => phone.close());
  const digits = phone.customer_uuid.replaceAll("-", "");
  const authorization = `Basic ${btoa(`AC${digits}:${phone.apiKey}`)}`;
  const url = `https://app.example/v2/Services/VA${digits}/Verifications/%ZZ`;
  const { status } = await fetchHandler(twilioVerify(phone.verifier))(new Request(url, { headers: { authorization } }));
  const responses = readDocument("openapi-twilio-verify.json").paths["/v2/Services/{Service}/Verifications/{Sid}"]?.["get"]?.responses;
  expect(Object.keys(responses ?? {})).toContain(String(status));
});

test("a report about another system's message does not reject the receipts beside it", async () => {
  const bench = receiptBench(aggregator.source);
  onTestFinished(() => bench.close());
  const ref = await bench.send("+33612345678");
  const { status, text } = await bench.post(aggregator.path, [
    { ref, status: "DELIVRD" },
    { ref: "order-77", status: "DELIVRD" },
  ]);
  expect({ status, text, statuses: bench.statuses() }).toEqual({ status: 200, text: "{}", statuses: ["submitted", "delivered"] });
});

test("the log names a receipt source that returns no reading", async () => {
  const bench = receiptBench(forgetful);
  onTestFinished(() => bench.close());
  await bench.post("/receipts/forgetful", {});
  expect(bench.errors.join("\n")).toContain("forgetful");
  expect(bench.errors.join("\n")).not.toContain("Cannot use 'in' operator");
});

test("a receipt source that never returns does not keep the carrier waiting for ever", async () => {
  const bench = receiptBench(hanging);
  onTestFinished(() => bench.close());
  const answer = bench.post("/receipts/hanging", {});
  await hanging.called;
  bench.advance(60_000);
  expect(await stateWithin(1_000, answer)).toBe("passed");
});

test("senderContract reports what a sender returned without reaching the carrier, before runners time out", async () => {
  const [run = Promise.resolve()] = withholding(async () => ({ outcome: "rejected", reason: "no route" }));
  expect(await stateWithin(2_000, run)).toBe("failed");
});

test("senderContract fails a sender that throws, and leaves no rejection unhandled", async () => {
  const { output, exitCode } = await runModule(
    `
      import { senderContract } from "phoneproof/testing";
      const send = async () => { throw new Error("no credentials"); };
      const [{ run }] = senderContract({ behaviours: ["withholds"] });
      setTimeout(() => process.exit(3), 1_500);
      await run({ open: async () => ({ sender: { send }, received: () => [], close: async () => {} }) }).catch(() => console.log("failed as it should"));
      process.exit(0);
    `,
  );
  expect({ output, exitCode }).toEqual({ output: "failed as it should\n", exitCode: 0 });
});

test("phoneproof dev reports why it ends when its output cannot be written", async () => {
  const full = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(full));
  const { output, exitCode } = await runNode(["dist/dev.js", "dev", "--port", "0", "--data", "memory"], full, AbortSignal.timeout(2_500));
  expect(output).toContain("ENOSPC");
  expect(exitCode).not.toBe(0);
});
