import { httpReceipts, httpSender } from "phoneproof/senders/http";
import { expect, it } from "vitest";
import { service } from "./receipts-at-scale-kit.js";

const phone_number = "+33612000001";

it("tells the customer of the first message's delivery after the third retry", async () => {
  const urls: string[] = [];
  const sender = httpSender({
    provider: "agg",
    url: "https://agg.example/send?to={to}&text={text}&report={receipt_url}",
    fetch: async (url) => {
      urls.push(new URL(String(url)).searchParams.get("report") ?? "");
      return new Response("{}");
    },
  });
  const { verifier, clock, told, post } = service(sender, httpReceipts({ provider: "agg", statuses: { delivered: "delivered" } }));
  const { authentication_uuid } = await verifier.createAuthentication({ phone_number, callback_url: "https://app.example/hook" });
  for (const seconds of [31, 61, 91]) {
    clock.advance(seconds * 1000);
    expect((await verifier.retry({ authentication_uuid })).status).toBe("approved");
  }

  // The phone was off: it is on again three minutes after the create, and the carrier delivers all four.
  for (const url of urls) expect((await post(`${url}&status=delivered`, {})).status).toBe(200);
  await verifier.flush();

  const delivered = told.filter(({ status }) => status === "delivered").map(({ attempt }) => attempt);
  expect(delivered.sort()).toEqual([1, 2, 3, 4]);
});
