import { describe, expect, it } from "vitest";
import { readPage } from "./pages.js";

describe("docs/migrate/prelude.md: which clients of Ding v1 can be kept", () => {
  const { text } = readPage("docs/migrate/prelude.md");

  it("lists the clients that accept a server URL, and those that hard-code it", () => {
    const rows = new Map([...text.matchAll(/^\| (`.*) \| (.*) \|$/gm)].map(([, client, url]) => [client as string, url as string]));
    const kept = [...rows].filter(([, url]) => /server_?url/i.test(url)).map(([client]) => client.match(/ding-\w+/)?.[0]);
    expect(kept).toEqual(["typescript", "python", "golang", "java", "php", "ruby", "csharp"].map((language) => `ding-${language}`));
    for (const client of ["ding-node", "ding-go", "firebase-integration-go"])
      expect([...rows].find(([clients]) => clients.includes(`\`${client}\``))?.[1], client).toContain("hard-coded");
  });

  it("this page and the front page state that a webhook receiver cannot be kept", () => {
    expect(text).toContain("A receiver written for v1's webhooks is not served as it is");
    expect(readPage("README.md").text).toMatch(/keep your client \(\[[^\]]+\]\(docs\/migrate\/prelude\.md\); a webhook receiver cannot\)/);
  });
});
