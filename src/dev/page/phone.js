const list = document.getElementById("messages");
const screen = document.getElementById("messages-log");
const notice = document.getElementById("notice");
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
/** List items by message. */
const shown = new Map();
/** Receipts by message. */
const receipts = new Map();

/** The phone on the page: it shows every message of the demo, those that curl asked for included. `onCode` is told the code that was tapped. */
export function startPhone(events, onCode) {
  const tick = () => {
    document.getElementById("phone-clock").textContent = time.format(new Date());
  };
  tick();
  setInterval(tick, 5_000);
  events.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data);
    // A message is told again with its receipt, and by a stream that was cut and came back.
    if (!shown.has(nameOf(message))) arrive(message, onCode);
    if (message.delivery) showDelivery(message);
  });
}

const nameOf = ({ authentication_uuid, attempt }) => `${authentication_uuid}/${attempt}`;

/** A new message, which is held back while messages are to come late. */
function arrive(message, onCode) {
  const fresh = message.at > performance.timeOrigin;
  const item = document.createElement("li");
  const deliver = () => {
    item.replaceChildren(...bubble(message, onCode));
    screen.scrollTop = screen.scrollHeight;
    if (fresh) showNotice(message, onCode);
  };
  shown.set(nameOf(message), item);
  document.getElementById("no-messages")?.remove();
  list.append(item);
  if (fresh && document.getElementById("late").checked) {
    const now = button("Deliver now", () => {
      deliver();
      item.querySelector("button").focus();
    });
    item.replaceChildren(head(message), line(`Message ${message.attempt} is still on its way.`, now));
    screen.scrollTop = screen.scrollHeight;
  } else {
    deliver();
  }
}

/** Takes the notice of the newest message away. */
export function hideNotice() {
  notice.hidden = true;
}

function showNotice({ text, code }, onCode) {
  document.getElementById("notice-text").textContent = text;
  notice.onclick = () => {
    hideNotice();
    onCode(code);
  };
  notice.hidden = false;
}

function head({ to, at }) {
  const element = document.createElement("p");
  element.className = "message-head";
  element.textContent = `${time.format(at)} · to ${to}`;
  return element;
}

function bubble(message, onCode) {
  const { text, code } = message;
  const body = document.createElement("p");
  body.className = "bubble";
  const [before, ...after] = text.split(code);
  const fill = button(code, () => onCode(code));
  fill.title = "Fill in this code";
  body.append(before, ...(after.length > 0 ? [fill, after.join(code)] : []));
  return [head(message), body, delivery(message)];
}

/** What is known of the delivery, or the buttons that play the carrier's receipt. */
function delivery(message) {
  if (message.outcome === "unknown") return line("Outcome unknown: no receipt will come.");
  const known = receipts.get(nameOf(message));
  if (known) return settled(known);
  const play = (status) => () => void report(message, status);
  return line("Receipt:", button("Delivered", play("delivered")), button("Undeliverable", play("undeliverable")));
}

/** Tells the demo the receipt; it tells every page in turn, this one included. */
async function report({ authentication_uuid, attempt }, status) {
  await fetch("/dev/receipts", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ authentication_uuid, attempt, status }),
  }).catch(() => undefined);
}

/** A receipt for a message that is still held back is shown once that is delivered. */
function showDelivery(receipt) {
  const name = nameOf(receipt);
  receipts.set(name, receipt.delivery);
  const item = shown.get(name);
  const waiting = item?.querySelector(".bubble ~ .delivery");
  if (!waiting) return;
  // The pressed button goes away: the focus stays at its message.
  if (waiting.contains(document.activeElement)) item.querySelector(".bubble button")?.focus();
  waiting.replaceWith(settled(receipt.delivery));
}

function settled(status) {
  const element = line(status === "delivered" ? "Delivered" : "Undeliverable");
  element.classList.toggle("failed", status === "undeliverable");
  return element;
}

function line(...parts) {
  const element = document.createElement("p");
  element.className = "delivery";
  element.append(...parts);
  return element;
}

function button(text, onClick) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.addEventListener("click", onClick);
  return element;
}
