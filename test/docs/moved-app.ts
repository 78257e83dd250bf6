import { afterAll, beforeAll, expect } from "vitest";
import { environmentFor } from "./environment.js";
import { type Page, readPage } from "./pages.js";
import { layOut, sharedPage } from "./project.js";
import { type Running, start } from "./run.js";

/** An app written for a vendor, and the page's own `service.ts`, both running. */
export interface MovedApp {
  readonly page: Page;
  readonly environment: Readonly<Record<string, string>>;
  /** Posts a form to the app. */
  post(path: string, form: Record<string, string>): Promise<[status: number, body: Record<string, unknown>]>;
  get(path: string): Promise<[status: number, body: Record<string, unknown>]>;
  /** The code of the nth message that the service printed for a number. */
  codeOf(to: string, nth?: number): Promise<string>;
  wrong(to: string): Promise<string>;
}

/** `settings` returns the app's variables; it is called when the service listens. */
export function movedApp(name: string, text: (page: Page) => string, settings: (address: string, app: MovedApp) => Promise<Record<string, string>>): MovedApp {
  const page = readPage(`docs/migrate/${name}.md`);
  const source = { path: `docs/moved-${name}.md`, text: "", blocks: [{ language: "ts", name: "app.ts", text: text(page), line: 1, notRun: undefined }] };
  const project = layOut([page, readPage(sharedPage), source], `phoneproof-docs-moved-${name}`);
  const environment = environmentFor(page.blocks.map(({ text }) => text));
  const running: Running[] = [];
  let service: Running;
  let url: string;

  async function begin(file: string, more: Readonly<Record<string, string>>): Promise<Running> {
    const one = await start(file, { ...environment, PORT: "0", ...more });
    running.push(one);
    return one;
  }

  const answerOf = async (response: Response) => [response.status, await response.json()] as [number, Record<string, unknown>];
  const app: MovedApp = {
    page,
    environment,
    post: async (path, form) => answerOf(await fetch(url + path, { method: "POST", body: new URLSearchParams(form) })),
    get: async (path) => answerOf(await fetch(url + path)),
    async codeOf(to, nth = 1) {
      const messages = () => service.printed().split(`SMS to ${to} `).slice(1);
      await expect.poll(() => messages().length).toBe(nth);
      return /\b\d{6}\b/.exec(messages().at(-1) ?? "")?.[0] ?? "no code";
    },
    wrong: async (to) => ((await app.codeOf(to)) === "000000" ? "000001" : "000000"),
  };

  beforeAll(async () => {
    expect(await project.compile()).toBe("");
    service = await begin(project.fileOf(page.path, "service.ts"), {});
    const signUp = await begin(project.fileOf(source.path, "app.ts"), await settings(`http://127.0.0.1:${service.port}`, app));
    url = `http://127.0.0.1:${signUp.port}`;
  });
  afterAll(async () => {
    for (const one of running) await one.end();
    project.remove();
  });
  return app;
}
