export const at = (id) => document.getElementById(id);

/** An element with these properties and children. */
export function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function button(text, onclick) {
  return make("button", { type: "button", className: "link", onclick }, text);
}

/** A labelled box of code that can be scrolled. */
export function box(label, ...code) {
  return make("pre", { tabIndex: 0, role: "group", ariaLabel: label }, make("code", {}, ...code));
}

/** A box of JSON with its names highlighted. */
export function jsonBox(label, value) {
  const parts = JSON.stringify(value, null, 2).split(/^( *".*?":)/m);
  return box(label, ...parts.map((part, index) => (index % 2 === 1 ? make("b", {}, part) : part)));
}
