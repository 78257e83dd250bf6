import { at, button, make } from "./json.js";

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
/** By message: its list item, its latest state, and whether it is `held` until it is delivered by hand. */
const shown = new Map();
let onCode;

/**
 * The phone on the page. It shows every message of the demo, including those requested with curl. `fillCode` receives
 * the code that was tapped.
 */
export function startPhone(events, fillCode) {
  onCode = fillCode;
  // A message is sent again with its receipt, and after a reconnect.
  events.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data);
    const name = `${message.authentication_uuid}/${message.attempt}`;
    const known = shown.get(name);
    if (known === undefined) {
      const fresh = message.at > performance.timeOrigin;
      const entry = { message, fresh, held: fresh && at("late").checked, item: make("li") };
      shown.set(name, entry);
      at("no-messages").hidden = true;
      at("messages").append(entry.item);
      draw(entry);
      showNotice(entry);
      at("messages-log").scrollTop = at("messages-log").scrollHeight;
    } else if (known.message.delivery !== message.delivery) {
      known.message = message;
      draw(known);
    }
  });
}

function draw(entry) {
  const { message, held, item } = entry;
  const hadFocus = item.contains(document.activeElement);
  const head = make("p", { className: "quiet" }, `${time.format(message.at)} · to ${message.to}`);
  const deliver = () => {
    entry.held = false;
    draw(entry);
    showNotice(entry);
  };
  const body = held ? [line(`Message ${message.attempt} is still on its way.`, button("Deliver now", deliver))] : [bubble(message), delivery(message)];
  item.replaceChildren(head, ...body);
  if (hadFocus) item.querySelector("button")?.focus();
}

function bubble({ text, code }) {
  const [before, ...after] = text.split(code);
  const fill = button(code, () => onCode(code));
  fill.title = "Fill in this code";
  return make("p", { className: "bubble" }, before, ...(after.length > 0 ? [fill, after.join(code)] : []));
}

/** The delivery status, or the buttons that send the carrier's receipt. */
function delivery(message) {
  if (message.outcome === "unknown") return line("Delivery unknown: no receipt will arrive.");
  if (message.delivery === "delivered") return line("Delivered");
  if (message.delivery === "undeliverable") return make("p", { className: "error" }, "Undeliverable");
  return line(
    "Receipt:",
    button("Delivered", () => report(message, "delivered")),
    button("Undeliverable", () => report(message, "undeliverable")),
  );
}

const line = (...parts) => make("p", { className: "row quiet" }, ...parts);

/** Sends the receipt to the demo, which then updates every open page. */
async function report({ authentication_uuid, attempt }, status) {
  await fetch("/dev/receipts", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ authentication_uuid, attempt, status }),
  }).catch(() => undefined);
}

function showNotice({ message, fresh, held }) {
  if (!fresh || held) return;
  at("notice-text").textContent = message.text;
  at("notice").onclick = () => onCode(message.code);
  at("notice").hidden = false;
}

export function hideNotice() {
  at("notice").hidden = true;
}
