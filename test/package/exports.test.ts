import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { type Format, manifest, modules, nameOf, root, run } from "./built.js";

/** Packages that are bundled into the ES modules; CommonJS loads them as installed. */
const inside = ["zod", "libphonenumber-js", "tsyringe", "ipaddr.js", "reflect-metadata"];

/** What each subpath exports, without types, and the only packages it loads. */
const surface: Readonly<Record<string, { readonly exports: readonly string[]; readonly loads: readonly string[] }>> = {
  ".": {
    exports: ["VerifierError", "createVerifier", "generateApiKey", "lazyVerifier", "parsePhoneNumber"],
    loads: ["ipaddr.js", "libphonenumber-js/max", "reflect-metadata/lite", "tsyringe", "zod"],
  },
  "./memory": { exports: ["memoryStore"], loads: [] },
  "./redis": { exports: ["fromGlide", "fromIoredis", "fromNodeRedis", "fromUpstash", "reconnectWhenSilent", "redisStore"], loads: [] },
  "./mongo": { exports: ["mongoStore"], loads: [] },
  "./sqlite": { exports: ["sqliteStore"], loads: [] },
  "./postgres": { exports: ["closeWhenSilent", "postgresStore", "schemaSql"], loads: [] },
  "./express": { exports: ["expressHandlers"], loads: [] },
  "./fastify": { exports: ["fastifyPlugin"], loads: [] },
  "./next": { exports: ["nextHandlers"], loads: [] },
  "./fetch": { exports: ["fetchHandler"], loads: [] },
  "./node": { exports: ["nodeHandler"], loads: [] },
  "./hooks": {
    exports: ["authentikHook", "authgearHook", "casdoorHook", "genericHook", "hooks", "kratosHook", "logtoHook", "oktaHook", "supabaseHook", "zitadelHook"],
    loads: ["zod"],
  },
  "./hooks/kit": {
    exports: [
      "anyOf",
      "asQueued",
      "asText",
      "byBodyHmac",
      "byStandardWebhook",
      "byTimedHmac",
      "byToken",
      "codeInText",
      "isBeforeToday",
      "isSent",
      "json",
      "makeHook",
      "openSecrets",
      "optionError",
      "outerStatusOf",
      "pick",
      "plain",
      "repeatKey",
      "sameText",
      "statusOf",
      "textOf",
      "timeOf",
      "toNumber",
    ],
    loads: [],
  },
  "./prelude-v2": { exports: ["authenticationUuidOf", "preludeV2"], loads: ["zod"] },
  "./twilio-verify": { exports: ["authenticationUuidOf", "twilioVerify"], loads: ["libphonenumber-js/max", "zod"] },
  "./better-auth": { exports: ["betterAuth"], loads: ["libphonenumber-js/max", "zod"] },
  "./client": { exports: ["FaultError", "TransportError", "createClient"], loads: [] },
  "./otp-input": { exports: ["otpWords"], loads: [] },
  "./challenge/hcaptcha": { exports: ["hcaptchaChallenge"], loads: [] },
  "./challenge/recaptcha": { exports: ["recaptchaChallenge"], loads: [] },
  "./challenge/turnstile": { exports: ["turnstileChallenge"], loads: [] },
  "./lookup/chain": { exports: ["lookupChain"], loads: [] },
  "./lookup/http": { exports: ["httpLookup"], loads: [] },
  "./lookup/telnyx": { exports: ["telnyxLookup"], loads: [] },
  "./lookup/twilio": { exports: ["twilioLookup"], loads: [] },
  "./lookup/vonage": { exports: ["vonageLookup"], loads: [] },
  "./senders/africastalking": { exports: ["africasTalkingReceipts", "africasTalkingSender", "africasTalkingVariables"], loads: [] },
  "./senders/aws": { exports: ["awsReceipts", "awsSender", "awsVariables"], loads: [] },
  "./senders/http": { exports: ["httpReceipts", "httpSender"], loads: [] },
  "./senders/inbox": { exports: ["inboxSender"], loads: [] },
  "./senders/infobip": { exports: ["infobipReceipts", "infobipSender", "infobipVariables"], loads: [] },
  "./senders/kit": {
    exports: [
      "acceptedAs",
      "badSignature",
      "basicAuth",
      "bodyForm",
      "bodyJson",
      "bodyText",
      "carrierSender",
      "claimTime",
      "digits",
      "errorToken",
      "expired",
      "failureOf",
      "framedSender",
      "idToken",
      "isRecord",
      "isStale",
      "isoTime",
      "malformed",
      "notSent",
      "openSecrets",
      "openTolerance",
      "openUrlSecret",
      "optionError",
      "parseJson",
      "pick",
      "readJwt",
      "readReport",
      "readReports",
      "rejectedWith",
      "requireText",
      "sameText",
      "sha256Hex",
      "withCode",
    ],
    loads: [],
  },
  "./senders/messagebird": { exports: ["messageBirdReceipts", "messageBirdSender", "messageBirdVariables"], loads: [] },
  "./senders/plivo": { exports: ["plivoReceipts", "plivoSender", "plivoVariables"], loads: [] },
  "./senders/sinch": { exports: ["sinchReceipts", "sinchSender", "sinchVariables"], loads: [] },
  "./senders/smpp": { exports: ["smppSender"], loads: [] },
  "./senders/telegram": { exports: ["telegramReceipts", "telegramSender", "telegramVariables"], loads: [] },
  "./senders/telnyx": { exports: ["telnyxReceipts", "telnyxSender", "telnyxVariables"], loads: [] },
  "./senders/twilio": { exports: ["twilioReceipts", "twilioSender", "twilioVariables", "twilioWhatsappSender", "twilioWhatsappVariables"], loads: [] },
  "./senders/twilio-voice": { exports: ["twilioVoiceReceipts", "twilioVoiceSender", "twilioVoiceVariables"], loads: [] },
  "./senders/vonage": { exports: ["vonageReceipts", "vonageSender", "vonageVariables", "vonageWhatsappSender", "vonageWhatsappVariables"], loads: [] },
  "./senders/vonage-voice": { exports: ["vonageVoiceReceipts", "vonageVoiceSender", "vonageVoiceVariables"], loads: [] },
  "./senders/whatsapp": { exports: ["whatsappReceipts", "whatsappSender", "whatsappVariables"], loads: [] },
  "./otel": { exports: ["openTelemetry"], loads: ["@opentelemetry/api"] },
  "./webhooks": { exports: ["WebhookError", "verifyWebhook"], loads: [] },
  "./router": { exports: ["router"], loads: ["libphonenumber-js/max", "zod"] },
  "./senders/console": { exports: ["consoleSender"], loads: [] },
  "./testing": {
    exports: ["createTestVerifier", "fixedClock", "scenarios", "senderContract", "simulate", "storeContract"],
    loads: ["ipaddr.js", "libphonenumber-js/max", "reflect-metadata/lite", "tsyringe", "zod"],
  },
};

/** Imports one subpath and prints its names and every package that one of our files imports. */
const programs: Readonly<Record<Format, (name: string) => string>> = {
  module: (name) => `
    import { register } from "node:module";
    const hook = \`
      import { writeSync } from "node:fs";
      export async function resolve(specifier, context, next) {
        const outside = !specifier.startsWith(".") && !specifier.startsWith("node:");
        if (outside && context.parentURL?.includes("/dist/") && !context.parentURL.includes("/node_modules/")) writeSync(1, specifier + "\\\\n");
        return next(specifier, context);
      }\`;
    register("data:text/javascript," + encodeURIComponent(hook));
    const names = Object.keys(await import(${JSON.stringify(name)}));
    console.log(JSON.stringify(names));`,
  commonjs: (name) => `
    const Module = require("node:module");
    const load = Module._load;
    Module._load = function (specifier, parent, ...more) {
      if (!/^(\\.|node:)/.test(specifier) && parent?.filename?.startsWith(${JSON.stringify(join(root, "dist"))})) console.log(specifier);
      return load.call(this, specifier, parent, ...more);
    };
    const names = Object.keys(require(${JSON.stringify(name)}));
    console.log(JSON.stringify(names));`,
};

test("package.json names the subpaths listed here, and no others", () => {
  expect(modules.sort()).toEqual(Object.keys(surface).sort());
});

/** `typesVersions` has one pattern for all of them: `"dist/*.d.ts"`. */
test("each subpath's declarations have its name, where old module resolution looks for them", () => {
  const types = modules.map((subpath) => [subpath, (manifest.exports[subpath] as { import: { types: string } }).import.types]);
  expect(types).toEqual(modules.map((subpath) => [subpath, `./dist/${subpath === "." ? "index" : subpath.slice(2)}.d.ts`]));
});

test("every file that package.json exports exists", () => {
  const files = Object.values(manifest.exports).flatMap((target) => (typeof target === "string" ? target : Object.values(target).flatMap(Object.values)));
  expect(files.filter((file) => !existsSync(join(root, file as string)))).toEqual([]);
});

test("the licences of the packages bundled into the ES modules are in dist/LICENSES.txt", () => {
  const licences = readFileSync(join(root, "dist/LICENSES.txt"), "utf8");
  for (const name of inside) expect(licences).toContain(`${name}\n\n${readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8")}`);
});

test("declarations name as values only what exists at run time", () => {
  const entries = modules.map((subpath) => [subpath, join(root, (manifest.exports[subpath] as { import: { types: string } }).import.types)] as const);
  const nodeNext = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const program = ts.createProgram(
    entries.map(([, file]) => file),
    { ...nodeNext, noLib: true, types: [] },
  );
  const checker = program.getTypeChecker();
  const aliased = (symbol: ts.Symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  /** As in `export type { X }` and `export { type X }`, also of something that has a value. */
  const isTypeOnly = (symbol: ts.Symbol) =>
    symbol.declarations?.some((one) => ts.isExportSpecifier(one) && (one.isTypeOnly || one.parent.parent.isTypeOnly)) ?? false;
  const declared = entries.map(([subpath, file]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file) as ts.SourceFile) as ts.Symbol;
    const values = checker.getExportsOfModule(module).filter((symbol) => aliased(symbol).flags & ts.SymbolFlags.Value && !isTypeOnly(symbol));
    return [subpath, values.map(({ name }) => name).sort()];
  });
  expect(Object.fromEntries(declared)).toEqual(Object.fromEntries(Object.entries(surface).map(([subpath, { exports }]) => [subpath, exports])));
});

describe.each(["module", "commonjs"] as const)("as %s", (format) => {
  test.each(Object.entries(surface))("%s exports and loads exactly what is listed", async (subpath, { exports, loads }) => {
    const lines = (await run(format, programs[format](nameOf(subpath)))).trim().split("\n");
    const names = JSON.parse(lines.pop() ?? "") as string[];
    const expected = format === "commonjs" ? loads : loads.filter((name) => !inside.some((one) => name.startsWith(one)));
    expect({ exports: names.sort(), loads: [...new Set(lines)].sort() }).toEqual({ exports, loads: expected });
  });
});
