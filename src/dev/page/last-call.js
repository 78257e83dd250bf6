/** The fold that shows the last call as it went over the wire, and the curl that repeats it. */
export function showLastCall() {
  const at = (id) => document.getElementById(id);
  document.addEventListener("call", ({ detail: { method, path, headers, sent, status, body, took } }) => {
    at("last-call-line").textContent = `${method} ${path} · ${status || "no answer"} · ${took} ms`;
    paint(at("last-request"), sent);
    paint(at("last-response"), body);
    at("last-curl").textContent = [
      `curl -sS ${quoted(location.origin + path)}`,
      ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      ...(sent ? [`-d ${quoted(JSON.stringify(sent))}`] : []),
    ].join(" \\\n  ");
  });
}

/** A word of a POSIX shell that stands for exactly this text. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** JSON with its names, texts and other values in their own colours. */
function paint(element, value) {
  if (value === undefined) return element.replaceChildren("(no body)");
  const parts = JSON.stringify(value, null, 2).split(/("(?:[^"\\]|\\.)*"(?:\s*:)?)/);
  element.replaceChildren(
    ...parts.map((part) => {
      if (!part.startsWith('"')) return part;
      const span = document.createElement("span");
      span.className = part.endsWith(":") ? "json-name" : "json-text";
      span.textContent = part;
      return span;
    }),
  );
}
