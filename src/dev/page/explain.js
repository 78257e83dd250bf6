import { clock } from "./words.js";

/** What `verifier.explain` says of an authentication, in words: how it stands, and each rule that fired. */
export function explained({ validated, left, sends, decisions }) {
  const standing = document.createElement("p");
  const told = [
    sends.length === 0 ? "Nothing was sent" : `${sends.length === 1 ? "One message" : `${sends.length} messages`} sent (${sends.map(wordOf).join(", ")})`,
    validated ? "validated" : `${count(left.checks, "try", "tries")} and ${count(left.retries, "message")} left`,
    left.seconds > 0 ? `${clock(left.seconds)} to go` : "expired",
  ];
  standing.textContent = `${told.join(" · ")}.`;
  const rules = decisions.map(({ rule, mode, value, threshold, reason }) => {
    const item = document.createElement("li");
    const name = document.createElement("code");
    name.textContent = rule;
    const measured = value === undefined ? "" : threshold === undefined ? `: ${value}` : `: ${value} of ${threshold}`;
    item.append(name, ` ${modes[mode]}${measured}${reason === undefined ? "." : `. ${reason}`}`);
    return item;
  });
  const box = document.createElement("div");
  box.className = "explained";
  const list = document.createElement("ul");
  list.append(...rules);
  box.append(standing, rules.length === 0 ? "No rule fired." : list);
  return box;
}

const modes = { enforce: "refused it", shadow: "would have refused it, and only watches", route: "was tried" };

const wordOf = ({ state, delivery }) => delivery ?? state;

const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;
