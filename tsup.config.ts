import { readFile, writeFile } from "node:fs/promises";
import { defineConfig, type Options } from "tsup";
import { rawText } from "./src/cli/demo/raw-text.js";
import { llmsFull } from "./tools/llms/llms.js";

/** CommonJS shares no chunks: there `testing` asks the files of the other subpaths for the verifier and the memory store, so that there is one of each. */
const siblings: NonNullable<Options["esbuildPlugins"]>[number] = {
  name: "siblings",
  setup(build) {
    if (build.initialOptions.format !== "cjs") return;
    build.onResolve({ filter: /^(\.\.\/|\.\.\/\.\.\/src\/)index\.js$|\/adapters\/store\/memory\/index\.js$/ }, ({ path, importer }) =>
      /[\\/](src[\\/]testing|tools[\\/]simulate)[\\/]/.test(importer)
        ? { path: path.endsWith("memory/index.js") ? "./memory.cjs" : "./index.cjs", external: true }
        : undefined,
    );
  },
};

/** Packages of many small files: nearly two hundred, whose loading one by one takes longer than everything else in an import. ES modules have them inside; `require` is quick with files, and takes them from where they are installed. */
const inside = ["zod", "libphonenumber-js", "tsyringe", "ipaddr.js", "reflect-metadata"];

const outsideOfCommonJs: NonNullable<Options["esbuildPlugins"]>[number] = {
  name: "outside of CommonJS",
  setup(build) {
    if (build.initialOptions.format !== "cjs") return;
    build.onResolve({ filter: new RegExp(`^(${inside.join("|")})(/|$)`) }, ({ path }) => ({ path, external: true }));
  },
};

/** Whoever passes on a package passes on its licence. */
async function writeLicences(): Promise<void> {
  // tslib is part of tsyringe.
  const files = [...inside.map((name) => [name, "LICENSE"]), ["tslib", "LICENSE.txt"]];
  const licences = await Promise.all(files.map(async ([name, file]) => `${name}\n\n${await readFile(`node_modules/${name}/${file}`, "utf8")}`));
  await writeFile("dist/LICENSES.txt", `The files of this folder contain parts of these packages.\n\n${licences.join("\n\n")}`);
}

/** One entry for each subpath of `exports` in package.json. The command (`dist/dev.js`) is built apart, by `npm run build:dev`. */
const options = {
  entry: {
    index: "src/index.ts",
    testing: "src/testing/index.ts",
    memory: "adapters/store/memory/index.ts",
    redis: "adapters/store/redis/index.ts",
    mongo: "adapters/store/mongo/index.ts",
    sqlite: "adapters/store/sqlite/index.ts",
    postgres: "adapters/store/postgres/index.ts",
    express: "adapters/http/express.ts",
    fastify: "adapters/http/fastify.ts",
    next: "adapters/http/next.ts",
    fetch: "adapters/http/fetch.ts",
    node: "adapters/http/node.ts",
    hooks: "src/hooks/index.ts",
    "hooks/kit": "src/hooks/kit/index.ts",
    "prelude-v2": "src/wires/prelude-v2/index.ts",
    "twilio-verify": "src/wires/twilio-verify/index.ts",
    "better-auth": "src/hooks/better-auth.ts",
    router: "src/routing/router.ts",
    otel: "adapters/otel/index.ts",
    webhooks: "clients/webhooks.ts",
    client: "clients/client/index.ts",
    "otp-input": "clients/otp-input/index.ts",
    "challenge/hcaptcha": "adapters/challenge/hcaptcha.ts",
    "challenge/recaptcha": "adapters/challenge/recaptcha.ts",
    "challenge/turnstile": "adapters/challenge/turnstile.ts",
    "lookup/chain": "adapters/lookup/chain.ts",
    "lookup/http": "adapters/lookup/http.ts",
    "lookup/telnyx": "adapters/lookup/telnyx.ts",
    "lookup/twilio": "adapters/lookup/twilio.ts",
    "lookup/vonage": "adapters/lookup/vonage.ts",
    "senders/console": "adapters/sms/console.ts",
    "senders/africastalking": "adapters/sms/africastalking.ts",
    "senders/aws": "adapters/sms/aws.ts",
    "senders/http": "adapters/sms/http.ts",
    "senders/inbox": "adapters/sms/inbox.ts",
    "senders/infobip": "adapters/sms/infobip.ts",
    "senders/kit": "adapters/sms/kit/index.ts",
    "senders/messagebird": "adapters/sms/messagebird.ts",
    "senders/plivo": "adapters/sms/plivo.ts",
    "senders/sinch": "adapters/sms/sinch.ts",
    "senders/smpp": "adapters/sms/smpp/index.ts",
    "senders/telegram": "adapters/sms/telegram.ts",
    "senders/telnyx": "adapters/sms/telnyx.ts",
    "senders/twilio": "adapters/sms/twilio.ts",
    "senders/twilio-voice": "adapters/sms/twilio-voice.ts",
    "senders/vonage": "adapters/sms/vonage.ts",
    "senders/vonage-voice": "adapters/sms/vonage-voice.ts",
    "senders/whatsapp": "adapters/sms/whatsapp.ts",
  },
  format: ["esm", "cjs"],
  target: "es2022",
  platform: "node",
  // Deno and Workers know Node's modules by their `node:` names alone.
  removeNodeProtocol: false,
  loader: { ".lua": "text" },
  noExternal: inside,
  esbuildPlugins: [rawText(), siblings, outsideOfCommonJs],
  onSuccess: async () => {
    await writeLicences();
    await writeFile("dist/llms-full.txt", llmsFull());
  },
} satisfies Options;

/** What `tsc` has declared for a source file, whose types `npm run check` checks. To bundle that takes a tenth of the time that sources take. */
const declarationsOf = (file: string) => `.declarations/${file.replace(/\.ts$/, ".d.ts")}`;

export default defineConfig({
  ...options,
  dts: { entry: Object.fromEntries(Object.entries(options.entry).map(([name, file]) => [name, declarationsOf(file)])) },
});
