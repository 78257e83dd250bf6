const list = document.getElementById("messages");
const notice = document.getElementById("notice");
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const shown = new Set();

/**
 * The phone on the page: it shows every message of the demo, those that curl asked for included.
 * `onCode` is told the code that was tapped; `onConnection` whether the demo can be reached.
 */
export function startPhone({ onCode, onConnection }) {
  const tick = () => {
    document.getElementById("phone-clock").textContent = time.format(new Date());
  };
  tick();
  setInterval(tick, 5_000);
  const stream = new EventSource("/dev/messages");
  stream.onopen = () => onConnection(true);
  stream.onerror = () => onConnection(false);
  stream.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    // A stream that was cut and came back tells all its messages again.
    const name = `${message.authentication_uuid}/${message.attempt}`;
    if (shown.has(name)) return;
    shown.add(name);
    document.getElementById("no-messages")?.remove();
    list.append(bubble(message, onCode));
    list.scrollTop = list.scrollHeight;
    if (message.at > performance.timeOrigin) showNotice(message, onCode);
  };
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

function bubble({ to, text, code, at }, onCode) {
  const item = document.createElement("li");
  const head = document.createElement("p");
  head.className = "message-head";
  head.textContent = `${time.format(at)} · to ${to}`;
  const body = document.createElement("p");
  body.className = "bubble";
  const [before, ...after] = text.split(code);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = code;
  button.title = "Fill in this code";
  button.addEventListener("click", () => onCode(code));
  body.append(before, ...(after.length > 0 ? [button, after.join(code)] : []));
  item.append(head, body);
  return item;
}
