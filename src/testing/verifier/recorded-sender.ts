import type { Inbox } from "../../../adapters/sms/inbox.js";
import type { SmsSender } from "../../ports/sms-sender.js";

/** A sender that also puts its messages into an inbox, except those it rejects. */
export function recordedSender(sender: SmsSender, inbox: Inbox): SmsSender {
  // For `createVerifier` to reject.
  if (typeof sender?.send !== "function") return sender;
  return new Proxy(sender, {
    get(target, name) {
      if (name === "send") {
        const send: SmsSender["send"] = async (message, context) => {
          const answer = await target.send(message, context);
          if (answer?.outcome !== "rejected") await inbox.send(message, context);
          return answer;
        };
        return send;
      }
      // `flush` does the worker's part.
      if (name === "fallback") return target.fallback && { ...target.fallback, elsewhere: true };
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}
