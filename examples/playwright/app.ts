import { randomUUID } from "node:crypto";
import express, { type Express, type Request } from "express";
import { type Verifier, VerifierError } from "phoneproof";

/** A visitor's session: the number they entered, and whether it is proven. */
interface Session {
  phone_number: string;
  authentication_uuid: string;
  isProven: boolean;
}

/** A sign-up by phone number. The verifier is a parameter, so that tests can pass their own. */
export function createApp(verifier: Verifier): Express {
  const sessions = new Map<string, Session>();
  const sessionOf = (request: Request) => sessions.get(/session=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "");
  const app = express();
  app.use(express.urlencoded({ extended: false }));

  app.get("/", (request, response) => {
    const session = sessionOf(request);
    response.send(session === undefined ? phoneForm() : session.isProven ? welcome(session) : codeForm());
  });

  app.post("/phone", async (request, response) => {
    const phone_number = String(request.body.phone_number ?? "").replace(/[\s.-]/g, "");
    try {
      const { authentication_uuid, status } = await verifier.createAuthentication({ phone_number, ip: request.ip });
      if (status !== "pending") return void response.send(phoneForm("Too many tries. Please come back later."));
      const id = randomUUID();
      sessions.set(id, { phone_number, authentication_uuid, isProven: false });
      response.cookie("session", id, { httpOnly: true, sameSite: "strict" }).redirect(303, "/");
    } catch (error) {
      if (!(error instanceof VerifierError) || error.status !== 400 || error.code === "bad_request") throw error;
      response.send(phoneForm("Please give a mobile number in international form, for example +33 6 12 34 56 78."));
    }
  });

  app.post("/code", async (request, response) => {
    const session = sessionOf(request);
    const check_code = String(request.body.code ?? "");
    if (session === undefined || check_code.trim() === "") return response.redirect(303, "/");
    const { status } = await verifier.check({ authentication_uuid: session.authentication_uuid, check_code });
    // Only "valid" proves the number: the one that this session entered.
    if (status === "valid") session.isProven = true;
    if (status === "valid" || session.isProven) return response.redirect(303, "/");
    response.send(codeForm(status === "invalid" ? "That is not the code." : "This code is over. Please begin again."));
  });

  app.post("/resend", async (request, response) => {
    const session = sessionOf(request);
    if (session === undefined) return response.redirect(303, "/");
    const { status } = await verifier.retry({ authentication_uuid: session.authentication_uuid });
    response.send(codeForm(status === "approved" ? "A new code is on its way." : "Please wait a little."));
  });

  return app;
}

const page = (body: string) => `<!doctype html><html lang="en"><title>Sign up</title><main>${body}</main></html>`;
const said = (words: string) => (words === "" ? "" : `<p role="alert">${words}</p>`);

function phoneForm(words = ""): string {
  return page(`<h1>Sign up</h1>${said(words)}<form method="post" action="/phone">
    <label>Mobile number <input name="phone_number" type="tel" autocomplete="tel" required></label><button>Send me a code</button></form>`);
}

function codeForm(words = ""): string {
  return page(`<h1>Enter the code</h1>${said(words)}<form method="post" action="/code">
    <label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" required></label><button>Continue</button></form>
    <form method="post" action="/resend"><button>Send another code</button></form>`);
}

function welcome({ phone_number }: Session): string {
  return page(`<h1>Welcome</h1><p>${phone_number} is yours.</p>`);
}
