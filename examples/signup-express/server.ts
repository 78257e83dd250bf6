import { randomBytes, randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import express, { type NextFunction, type Request, type Response } from "express";
import { parsePhoneNumber } from "phoneproof";
import { wordsForEnded, wordsForError, wordsForRefused, wordsForTyped } from "../words.js";
import { type Answer, codePage, numberPage, problemPage, welcomePage } from "./pages.js";
import { verifier } from "./verifier.js";

interface Session {
  /** The code that this browser requested. Its id never leaves the server. */
  pending?: { readonly authentication_uuid: string; readonly phone_number: string; answer: Answer };
  /** The number that this browser has proven. */
  phone_number?: string;
}

const sessions = new Map<string, Session>(); // use your app's sessions
const cookie = { httpOnly: true, sameSite: "lax", secure: process.env.NODE_ENV === "production" } as const;

function readCookie(request: Request, name: string): string | undefined {
  const pairs = (request.headers.cookie ?? "").split("; ").map((pair) => pair.split("="));
  return pairs.find(([key]) => key === name)?.[1];
}

function sessionOf(request: Request): Session {
  return sessions.get(readCookie(request, "session") ?? "") ?? {};
}

/**
 * Begins a session under a new id, so that the old id gives no access to it.
 * The old one is signed out. It keeps its pending code, for a second click whose cookie is still the old one.
 */
function beginSession(request: Request, response: Response, session: Session): void {
  delete sessionOf(request).phone_number;
  const id = randomBytes(24).toString("base64url");
  sessions.set(id, session);
  response.cookie("session", id, { ...cookie, maxAge: 30 * 86_400_000 });
}

/** A random id for this browser, stored for a year: caps and spam rules count by it. */
function deviceOf(request: Request, response: Response): string {
  const known = readCookie(request, "device") ?? "";
  const device = /^[\w-]{24}$/.test(known) ? known : randomBytes(18).toString("base64url");
  response.cookie("device", device, { ...cookie, maxAge: 365 * 86_400_000 });
  return device;
}

/** The user's address, without a zone, and without the port that some proxies add. */
const addressOf = (request: Request) => request.ip?.replace(/^\[([^\]%]+).*|^([\d.]+):\d+$|%.*/, "$1$2");

const field = (request: Request, name: string) => String(request.body?.[name] ?? "");

/** The key of the form, with what was entered: after "back", another number or code is another request. */
const keyOf = (request: Request, entered: string) => ({ idempotencyKey: (field(request, "key") || randomUUID()) + encodeURIComponent(entered).slice(0, 200) });

const app = express();
app.set("trust proxy", false); // behind your own proxies: set their number, so that request.ip is the user's and cannot be forged
app.use(express.static(fileURLToPath(new URL("public", import.meta.url))));
app.use("/phoneproof", express.static(fileURLToPath(new URL(".", import.meta.resolve("phoneproof/otp-input")))));
app.use(express.urlencoded({ extended: false }));

/** Passes what a route throws to the error handler at the end, in Express 4 too. */
const post = (path: string, route: (request: Request, response: Response) => Promise<void>) =>
  app.post(path, (request, response, pass) => void route(request, response).catch(pass));

app.use((request, response, pass) => {
  response.set("cache-control", "no-store"); // "back" requests the page again, and shows the current state
  const { origin = "" } = request.headers;
  const ours = URL.canParse(origin) && [request.host, request.get("host")].includes(new URL(origin).host); // in Express 4 request.host has no port
  if (request.method === "POST" && !ours) response.status(403).send(problemPage("This form is not one of this site."));
  else pass();
});

app.get("/", (request, response) => {
  const { phone_number, pending } = sessionOf(request);
  const { ended } = request.query;
  deviceOf(request, response); // set before the form is sent, so that a double click has one id
  if (phone_number !== undefined) response.send(welcomePage(phone_number));
  else response.send(numberPage({ problem: ended === undefined ? "" : wordsForEnded(String(ended)), waiting: pending !== undefined }));
});

post("/sign-up", async (request, response) => {
  const [phone, country] = [field(request, "phone"), field(request, "country")];
  const again = (problem: string) => void response.status(400).send(numberPage({ problem, phone, country }));
  const parsed = parsePhoneNumber(phone, { country });
  if (!parsed.ok) return again(wordsForTyped(parsed.reason));
  try {
    const fields = { phone_number: parsed.phone_number, device_type: "WEB", device_id: deviceOf(request, response), ip: addressOf(request) } as const;
    const answer = await verifier.createAuthentication(fields, keyOf(request, parsed.phone_number));
    const refused = wordsForRefused(answer);
    if (refused !== undefined) return again(refused);
    const { authentication_uuid, phone_number } = answer;
    beginSession(request, response, { pending: { authentication_uuid, phone_number, answer } });
    response.redirect(303, "/code");
  } catch (error) {
    again(wordsForError(error));
  }
});

app.get("/code", (request, response) => {
  const { pending, phone_number } = sessionOf(request);
  if (pending !== undefined) response.send(codePage(pending));
  else response.redirect(303, phone_number === undefined ? "/?ended=no_session" : "/");
});

post("/code", async (request, response) => {
  const session = sessionOf(request);
  if (session.pending === undefined) return response.redirect(303, "/code");
  const { authentication_uuid } = session.pending;
  const check_code = field(request, "code");
  const checked = await verifier.check({ authentication_uuid, check_code }, keyOf(request, check_code));
  if (checked.status === "valid") beginSession(request, response, { phone_number: checked.phone_number }); // find or create the account of this number here
  response.redirect(303, checked.status === "valid" ? "/" : next(session, checked));
});

/** Sends another code; calls only on request. */
const sendAgain = (channel?: "voice") => async (request: Request, response: Response) => {
  const session = sessionOf(request);
  if (session.pending === undefined) return response.redirect(303, "/code");
  const { authentication_uuid } = session.pending;
  response.redirect(303, next(session, await verifier.retry({ authentication_uuid, channel })));
};
post("/resend", sendAgain());
post("/call", sendAgain("voice"));

/** The code form while a code may still be entered, else the number form. */
function next(session: Session, answer: Answer): string {
  if (session.pending !== undefined && answer.remaining_checks > 0) {
    session.pending.answer = answer;
    return "/code";
  }
  delete session.pending;
  return `/?ended=${answer.status === "invalid" ? "rate_limited" : answer.status}`;
}

app.post("/sign-out", (request, response) => {
  beginSession(request, response, {});
  response.redirect(303, "/");
});

app.use((error: Error & { readonly status?: number }, _request: Request, response: Response, pass: NextFunction) => {
  if (response.headersSent) return pass(error);
  console.error(error);
  response.status(error.status ?? 500).send(problemPage("Something went wrong. Try again in a moment."));
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
