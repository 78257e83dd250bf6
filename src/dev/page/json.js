/** JSON with its names, texts and other values in their own colours, in a box that can be scrolled. */
export function painted(label, value) {
  const code = document.createElement("code");
  const parts = JSON.stringify(value, null, 2).split(/("(?:[^"\\]|\\.)*"(?:\s*:)?)/);
  code.append(
    ...parts.map((part) => {
      if (!part.startsWith('"')) return part;
      const span = document.createElement("span");
      span.className = part.endsWith(":") ? "json-name" : "json-text";
      span.textContent = part;
      return span;
    }),
  );
  return wire(label, code);
}

/** A box for text as it goes over the wire. */
export function wire(label, code) {
  const box = document.createElement("div");
  box.className = "wire";
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  const text = document.createElement("pre");
  text.append(code);
  box.append(text);
  return box;
}
