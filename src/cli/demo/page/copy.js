import { at } from "./json.js";

/** Makes a button copy the text of an element or the value of a field. */
export function copies(button, source) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
      at("announce").textContent = "Copied to the clipboard.";
      setTimeout(() => {
        button.textContent = label;
        at("announce").textContent = "";
      }, 1_500);
    } catch {
      // No access to the clipboard (plain http from another machine): select the text instead.
      if (source.select) source.select();
      else getSelection().selectAllChildren(source);
    }
  });
}
