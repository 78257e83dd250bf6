import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { genericToken } from "./identity-servers.js";

/** A page of docs/behind. */
export const pageOf = (name: string): Promise<string> => readFile(join(import.meta.dirname, `../../docs/behind/${name}.md`), "utf8");

export const index = await pageOf("index");

/** A file shown on the index page, with the service at `url`. */
const fileOf = (name: string, url: string) =>
  (new RegExp(`\`\`\`js\n// ${name.replace(".", "\\.")}\n([\\s\\S]*?)\`\`\``).exec(index)?.[1] ?? "none").replaceAll("https://otp.example.com", url);

/** The exports of an Action. */
export function actionOf(name: string, url: string): Record<string, (...given: unknown[]) => Promise<void>> {
  const exports: ReturnType<typeof actionOf> = {};
  new Function("exports", fileOf(name, url))(exports);
  return exports;
}

/** The handler of a Lambda, with a stand-in for the AWS Encryption SDK: the code is not encrypted. */
export async function lambdaOf(name: string, url: string): Promise<(event: object) => Promise<unknown>> {
  const folder = await mkdtemp(join(tmpdir(), "cognito-"));
  const sdk = join(folder, "node_modules/@aws-crypto/client-node");
  await mkdir(sdk, { recursive: true });
  await writeFile(join(sdk, "package.json"), '{"name":"@aws-crypto/client-node","type":"module","exports":"./index.js"}');
  await writeFile(
    join(sdk, "index.js"),
    "export const CommitmentPolicy = { REQUIRE_ENCRYPT_ALLOW_DECRYPT: 1 }; export class KmsKeyringNode {} export const buildClient = () => ({ decrypt: async (_keyring, plaintext) => ({ plaintext }) });",
  );
  await writeFile(join(folder, name), fileOf(name, url));
  process.env["HOOK_TOKEN"] = genericToken;
  const { handler } = await import(/* @vite-ignore */ pathToFileURL(join(folder, name)).href);
  await rm(folder, { recursive: true });
  return handler;
}
