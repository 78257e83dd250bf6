import { afterAll, beforeAll } from "vitest";
import { buildNextApp } from "../http/next-app.js";
import type { Mount } from "./listen.js";
import { nextMounts } from "./next.js";
import { sdkSuite as preludeSuite } from "./prelude-v2/sdk.js";
import { sdkSuite as twilioSuite } from "./twilio-verify/sdk.js";

let app: Awaited<ReturnType<typeof nextMounts>>;
beforeAll(async () => {
  await buildNextApp("next-mounted");
  app = await nextMounts();
});
afterAll(() => app?.close());

const mount: Mount = (...wanted) => app.mount(...wanted);
preludeSuite("Next.js", mount);
twilioSuite("Next.js", mount);
