import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { llms, llmsFull } from "../../tools/llms/llms.js";

/** As GitHub makes a heading's anchor, which links in the pages and `doc_url` go by: underscores stay. */
function slugify(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

const page = (text: string, name: string) => ({ text, link: `/${name}` });

/** The site of the documents: `npm run docs` serves it, `npm run docs:build` writes it to `docs/.vitepress/dist`. The pages are the files that GitHub shows. */
export default defineConfig({
  title: "phoneproof",
  description: "Verify phone numbers by one-time SMS code inside your own Node app.",
  cleanUrls: false,
  lastUpdated: false,
  markdown: { anchor: { slugify } },
  buildEnd({ outDir }) {
    writeFileSync(join(outDir, "llms.txt"), llms());
    writeFileSync(join(outDir, "llms-full.txt"), llmsFull());
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      {
        text: "The first hour",
        items: [
          page("What it is, and for whom", ""),
          page("Compare", "compare"),
          page("Install", "install"),
          page("Your first form", "first-form"),
          page("Next.js", "next"),
        ],
      },
      {
        text: "Send",
        items: [
          page("A real carrier", "carriers"),
          page("Registration", "carriers/registration"),
          page("SMPP", "carriers/smpp"),
          page("Telegram, WhatsApp and calls", "carriers/channels"),
          page("Write your own sender", "carriers/own-sender"),
          page("Choose a store", "stores"),
          page("Several carriers and ceilings", "routing"),
          page("Stop fraud", "fraud"),
          page("Callbacks and receipts", "callbacks"),
        ],
      },
      { text: "Build", items: [page("Front end", "front-end"), page("Testing", "testing"), page("Frameworks", "frameworks"), page("Runtimes", "runtimes")] },
      {
        text: "Behind an identity server",
        items: [
          page("All servers", "behind/"),
          page("Supabase", "behind/supabase"),
          page("Logto", "behind/logto"),
          page("Ory Kratos", "behind/kratos"),
          page("ZITADEL", "behind/zitadel"),
          page("Better Auth", "behind/better-auth"),
          page("SuperTokens", "behind/supertokens"),
        ],
      },
      {
        text: "Run",
        items: [
          page("Operations", "operations"),
          page("The server", "serve"),
          page("Watching", "watching"),
          page("No code arrived", "no-code"),
          page("Go-live checklist", "go-live"),
          page("Privacy", "privacy"),
        ],
      },
      {
        text: "Look up",
        items: [
          page("API: direct calls", "api"),
          page("Errors", "errors"),
          page("Options", "options"),
          page("Lookup", "lookup"),
          page("Customers and keys", "customers"),
          page("Glossary", "glossary"),
        ],
      },
      {
        text: "Migrate",
        items: [
          page("From Prelude v2", "migrate/prelude-v2"),
          page("From Prelude v1 or Ding", "migrate/prelude"),
          page("From Twilio Verify, keeping your client", "migrate/twilio-verify"),
          page("From Twilio Verify", "migrate/twilio"),
          page("From hand-written codes", "migrate/hand-written"),
          page("From better-auth", "migrate/better-auth"),
        ],
      },
      { text: "Inside", items: [page("How it works", "how-it-works"), page("The contract", "contract"), page("Decisions", "decisions/")] },
    ],
  },
});
