import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smppSender } from "../../adapters/sms/smpp/index.js";
import { isInstalled } from "../support/programs.js";
import { aMessage, eventually, type Peer, password, startPeer, stoppedClock, systemId, textOf } from "../support/smpp.js";

describe.runIf(isInstalled("openssl", "openssl", "SMPP over TLS", "version"))("over TLS", () => {
  const directory = mkdtempSync(join(tmpdir(), "phoneproof-smpp-"));
  let peer: Peer;
  let cert: string;

  beforeAll(async () => {
    const [keyFile, certFile] = [join(directory, "key.pem"), join(directory, "cert.pem")];
    const kind = [
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=peer",
      "-addext",
      "subjectAltName=IP:127.0.0.1,DNS:localhost",
    ];
    execFileSync("openssl", ["req", "-x509", ...kind, "-keyout", keyFile, "-out", certFile], { stdio: "ignore" });
    cert = readFileSync(certFile, "utf8");
    peer = await startPeer({ key: readFileSync(keyFile, "utf8"), cert });
  });

  afterAll(async () => {
    await peer?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const aSender = (tls: true | { ca: string; servername?: string }, host = "127.0.0.1") => {
    const clock = stoppedClock();
    return { clock, sender: smppSender({ host, port: peer.port, systemId, password, tls, clock }) };
  };

  it("binds and submits to a peer whose certificate is trusted", async () => {
    const { sender, clock } = aSender({ ca: cert });
    expect(await sender.send(aMessage(), clock.context())).toEqual({ outcome: "accepted", messageId: "m1" });
    expect(textOf(peer.of("submit_sm")[0])).toBe("Your code is 482913");
    await sender.close();
  });

  it("sends the host name to the peer", async () => {
    const { sender } = aSender({ ca: cert }, "localhost");
    await sender.connect();
    expect((peer.sessions.at(-1)?.socket as (TLSSocket & { servername: string }) | undefined)?.servername).toBe("localhost");
    await sender.close();
  });

  it("with an untrusted certificate no password is sent, and the message is rejected with the reason", async () => {
    const { sender, clock } = aSender(true);
    const binds = peer.of("bind_transceiver").length;
    const outcome = sender.send(aMessage(), clock.context());
    await eventually(() => expect(sender.status().state).toBe("waiting"));
    clock.advance(4_900);
    expect(await outcome).toEqual({ outcome: "rejected", reason: expect.stringContaining("SELF_SIGNED") });
    expect(peer.of("bind_transceiver")).toHaveLength(binds);
    await sender.close();
  });

  it("a certificate for another name is rejected", async () => {
    const { sender } = aSender({ ca: cert, servername: "smsc.example.com" });
    await expect(sender.connect()).rejects.toThrow("ERR_TLS_CERT_ALTNAME_INVALID");
    await sender.close();
  });
});
