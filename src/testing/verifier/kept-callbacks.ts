import { type DeliveryStatusEvent, verifyWebhook } from "../../../clients/webhooks.js";
import type { CallbackSender } from "../../ports/callback-sender.js";

/** A callback as its receiver gets it, with a verified signature. */
export interface TestCallback {
  /** The `callback_url` of its authentication. */
  readonly url: string;
  readonly customer_uuid: string;
  readonly event: DeliveryStatusEvent;
  readonly headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  readonly body: string;
}

/**
 * A callback sender that records callbacks and returns 204, or what `through` returns after posting them. A callback
 * with an invalid signature is a failed delivery.
 */
export function keptCallbacks(
  secretsOf: (customer: string) => Promise<readonly string[]>,
  through?: CallbackSender,
): CallbackSender & { readonly callbacks: readonly TestCallback[] } {
  const callbacks: TestCallback[] = [];
  return {
    callbacks,
    async post(request) {
      const { url, customer, headers, body } = request;
      // The clock may have jumped since it was signed.
      const now = Number(headers["webhook-timestamp"]) * 1_000;
      const event = verifyWebhook({ secret: await secretsOf(customer), headers, body, now });
      callbacks.push({ url, customer_uuid: customer, event, headers, body });
      return through === undefined ? { status: 204 } : through.post(request);
    },
    close: () => through?.close?.(),
  };
}
