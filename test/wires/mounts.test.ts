import { preludeV2 } from "../../src/wires/prelude-v2/index.js";
import { twilioVerify } from "../../src/wires/twilio-verify/index.js";
import { mountings } from "../http/hosts.js";
import { createService } from "../http/service.js";
import { wiresSuite } from "./mounts.js";

// Next.js is in test/http/next.test.ts, which builds its app.
for (const { name, start } of mountings.filter(({ direct }) => !direct))
  wiresSuite(name, async () => {
    const service = createService();
    const { verifier } = service;
    return { host: await start([preludeV2(verifier), twilioVerify(verifier), verifier, verifier.receipts]), service };
  });
