import { make } from "./json.js";
import { clock } from "./words.js";

/** The output of `verifier.explain` in words: the state of an authentication and each rule that matched. */
export function explained({ validated, left, sends, decisions }) {
  const sent = sends.filter(({ state }) => state !== "rejected");
  const state = [
    sent.length === 0 ? "No message sent" : `${count(sent.length, "message")} sent (${sent.map((one) => one.delivery ?? one.state).join(", ")})`,
    validated ? "verified" : `${count(left.checks, "try", "tries")} and ${count(left.retries, "message")} left`,
    left.seconds > 0 ? `expires in ${clock(left.seconds)}` : "expired",
  ];
  const rules = decisions.map(({ rule, mode, value, threshold, reason }) => {
    const measured = value === undefined ? "" : threshold === undefined ? `: ${value}` : `: ${value} of ${threshold}`;
    return make("p", {}, make("code", {}, rule), ` ${modes[mode]}${measured}.${reason === undefined ? "" : ` ${reason}`}`);
  });
  return make("div", {}, make("p", {}, `${state.join(" · ")}.`), ...(rules.length === 0 ? ["No rule matched."] : rules));
}

const modes = { enforce: "blocked it", shadow: "would have blocked it (shadow mode)", route: "was tried" };

const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;
