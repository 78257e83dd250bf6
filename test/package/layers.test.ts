import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { circlesIn, faultsOf } from "./layers.js";

const root = join(import.meta.dirname, "../..");

const files = ["src", "adapters", "clients", "tools/simulate"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.startsWith("tools/simulate/command/")),
);

describe("the tower (docs/contract.md#layers), adapters (docs/contract.md#adapters)", () => {
  test("the files are found", () => {
    expect(files).toContain("src/index.ts");
    expect(files).toContain("adapters/store/memory/index.ts");
  });

  test.each(files)("%s imports only from below", (path) => {
    expect(faultsOf(path, readFileSync(join(root, path), "utf8"))).toEqual([]);
  });

  test("no files import each other in a circle, not even for a type", () => {
    expect(circlesIn(new Map(files.map((path) => [path, readFileSync(join(root, path), "utf8")])))).toEqual([]);
  });
});

describe("the rule itself", () => {
  test("finds a circle of types", () => {
    const texts = new Map([
      ["src/core/one.ts", `import type { Two } from "./two.js";`],
      ["src/core/two.ts", `export type { Three } from "./three.js";`],
      ["src/core/three.ts", `type One = import("./one.js").One;`],
      ["src/core/four.ts", `import { one } from "./one.js";`],
    ]);
    expect(circlesIn(texts)).toEqual([["src/core/one.ts", "src/core/two.ts", "src/core/three.ts"]]);
  });

  const refused: [path: string, text: string, why: string][] = [
    ["src/domain/check.ts", `import { createCheck } from "../operations/check.js";`, "that is above"],
    ["src/domain/check.ts", `import type { Store } from "../ports/store.js";`, "that is above"],
    ["src/domain/check.ts", `type T = import("../ports/store.js").Store;`, "that is above"],
    ["src/domain/check.ts", `import { VerifierError } from "../errors.js";`, "same floor"],
    ["src/routing/router.ts", `import { createMonitor } from "../observability/monitor.js";`, "same floor"],
    ["src/http/handle.ts", `export { compose } from "../composition.js";`, "that is above"],
    ["src/http/handle.ts", `const late = () => import("../create-verifier.js");`, "that is above"],
    ["src/index.ts", `export { memoryStore } from "../adapters/store/memory/index.js";`, "that is above"],
    ["src/contract/check.ts", `import { randomUUID } from "node:crypto";`, "zod alone"],
    ["src/contract/check.ts", `import { VerifierError } from "../errors.js";`, "that is above"],
    ["src/ports/store.ts", `import { EventEmitter } from "node:events";`, "erased at build"],
    ["src/operations/create.ts", `import { inject } from "tsyringe";`, "only src/composition.ts may"],
    ["src/cli/start.ts", `import "reflect-metadata/lite";`, "only src/composition.ts may"],
    ["src/create-verifier.ts", `import type { Wire } from "./wires/kit/wire.js";`, "that is above"],
    ["src/wires/prelude-v2/index.ts", `import { twilioVerify } from "../twilio-verify/index.js";`, "same floor"],
    ["src/wires/prelude-v2/index.ts", `import { createVerifier } from "../../create-verifier.js";`, "by its types only"],
    ["src/wires/kit/wire.ts", `import { sha256 } from "../../core/hash.js";`, "by its types only"],
    ["src/hooks/hooks.ts", `import { sha256 } from "../core/hash.js";`, "by its types only"],
    ["src/hooks/kit/hook.ts", `import { hooks } from "../hooks.js";`, "that is above"],
    ["src/stray.ts", ``, "stands on no floor"],
    ["src/operations/create.ts", `import { stray } from "../stray.js";`, "stands on no floor"],
    ["src/operations/create.ts", `import { expect } from "../../test/support/redis.js";`, "stands on no floor"],
    ["adapters/http/express.ts", `import { VerifierError } from "../../src/errors.js";`, "types only"],
    ["adapters/http/express.ts", `import { type HttpBody, VerifierError } from "../../src/index.js";`, "types only"],
    ["adapters/http/express.ts", `import "../../src/composition.js";`, "types only"],
    ["src/domain/gsm.ts", `import { day } from "./time.js";`, "imports nothing"],
    ["adapters/sms/smpp/text.ts", `import { messageText } from "../../../src/domain/message.js";`, "types only"],
    ["adapters/sms/kit/extra.ts", `import { smppSender } from "../smpp/index.js";`, "another folder's"],
    ["adapters/lookup/twilio.ts", `import { openExtra } from "../sms/kit/extra.js";`, "another folder's"],
    ["adapters/kit/json.ts", `import { openExtra } from "../sms/kit/extra.js";`, "another folder's"],
    ["adapters/http/express.ts", `import type { memoryStore } from "../store/memory.js";`, "another folder's"],
    ["adapters/store/memory/index.ts", `import { keysUnder } from "./redis/keys.js";`, "another folder's"],
    ["adapters/http/express.ts", `import type { DevSession } from "../../src/cli/demo/session.js";`, "that is above"],
  ];
  test.each(refused)("rejects, in %s, %s", (path, text, why) => {
    const faults = faultsOf(path, text);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(why);
  });

  const allowed: [path: string, text: string][] = [
    ["src/domain/check.ts", `import { judge } from "./decision.js";\nimport type { CheckStatus } from "../contract/check.js";`],
    ["src/contract/check.ts", `import { z } from "zod";\nimport { uuid } from "./fields.js";`],
    ["src/cli/start.ts", `import { memoryStore } from "../../adapters/store/memory/index.js";\nimport { createVerifier } from "../index.js";`],
    [
      "src/wires/kit/wire.ts",
      `import type { Verifier } from "../../create-verifier.js";\nimport { VerifierError } from "../../errors.js";\nimport { answer } from "../../http/answer.js";`,
    ],
    ["adapters/http/express.ts", `import { read } from "./node.js";\nimport type { HttpHandler } from "../../src/http/message.js";`],
    ["adapters/http/express.ts", `import { type HttpBody, type HttpHandler } from "../../src/http/message.js";\nimport type { Router } from "express";`],
    ["adapters/sms/smpp/text.ts", `import { gsmCodes } from "../../../src/domain/gsm.js";`],
    ["adapters/sms/smpp/from.ts", `import { openSenderId } from "../kit/sender-id.js";`],
    ["adapters/sms/twilio.ts", `import { openSenderId } from "./kit/sender-id.js";`],
    ["adapters/lookup/twilio.ts", `import { pick } from "../kit/json.js";`],
    ["adapters/store/redis/index.ts", `import lease from "./lease.lua";`],
  ];
  test.each(allowed)("accepts, in %s, %s", (path, text) => {
    expect(faultsOf(path, text)).toEqual([]);
  });
});
