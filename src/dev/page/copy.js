const announcement = document.getElementById("announce");

/** A button that copies the text of an element. */
export function copies(button, source) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
      announcement.textContent = "Copied to the clipboard.";
      setTimeout(() => {
        button.textContent = label;
        announcement.textContent = "";
      }, 1_500);
    } catch {
      // No access to the clipboard (plain http from another machine): select the text instead.
      getSelection().selectAllChildren(source);
    }
  });
}
