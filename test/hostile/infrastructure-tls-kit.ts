import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate in files that the user of PostgreSQL may read. */
export interface Certificate {
  readonly text: string;
  /** Settings of a server that uses it. */
  readonly settings: readonly string[];
  remove(): void;
}

/** Makes one for a name of a host. */
export function certificateFor(name: string): Certificate {
  const folder = mkdtempSync(join(tmpdir(), "phoneproof-tls-"));
  const [key, file] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const args = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", key, "-out", file];
  execFileSync("openssl", ["req", "-x509", "-nodes", ...args, "-days", "2", "-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`], {
    stdio: "ignore",
  });
  if (process.getuid?.() === 0) {
    const owner = Number(execFileSync("id", ["-u", "postgres"], { encoding: "utf8" }));
    for (const path of [folder, key, file]) chownSync(path, owner, owner);
  }
  return {
    text: readFileSync(file, "utf8"),
    settings: ["ssl=on", `ssl_cert_file=${file}`, `ssl_key_file=${key}`],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
