/**
 * Colours are derived from the page's text colour, for contrast on any background: light, dark or a custom theme. Cells
 * adapt to the available width. Digits are written from left to right in every script. Boxes show what is selected: the
 * browser's own highlight would be a bar across them. In forced colors, the plate that the browser draws behind text
 * would cover their borders.
 */
export const style = `
:host {
  display: block;
  min-inline-size: 0;
  margin-block-end: .75rem;
  --_size: var(--otp-size, 3.25rem);
  --_gap: var(--otp-gap, .5rem);
  --_accent: var(--otp-accent, color-mix(in oklab, #2563eb 68%, currentcolor));
  --_error: var(--otp-error, color-mix(in oklab, #d92d20 66%, currentcolor));
  --_success: var(--otp-success, color-mix(in oklab, #12803c 66%, currentcolor));
  --_line: var(--otp-line, color-mix(in oklab, currentcolor 54%, transparent));
}
:host([hidden]), [hidden] { display: none }
.root { text-align: start; line-height: 1.45 }
label { display: inline-block; margin-block-end: .5rem; font-weight: 600; font-size: .9375em }
.room { container-type: inline-size; contain-intrinsic-inline-size: calc((var(--_size) + var(--_gap)) * var(--_n) - var(--_gap)) }
.field {
  --_mark: var(--_accent);
  direction: ltr;
  position: relative;
  --_between: min(var(--_gap), 14cqi / var(--_n));
  --_cell: min(var(--_size), (100cqi + var(--_between)) / var(--_n) - var(--_between));
  --_step: calc(var(--_cell) + var(--_between));
  inline-size: calc(var(--_step) * var(--_n) - var(--_between));
  block-size: var(--otp-height, max(2.75rem, var(--_cell) * 1.12));
}
.boxes { position: absolute; inset: 0; display: flex; gap: var(--_between) }
.box {
  flex: 1;
  box-sizing: border-box;
  border: 1.5px solid var(--_line);
  border-radius: min(var(--otp-radius, .75rem), var(--_cell) * .3);
  background: var(--otp-fill, color-mix(in oklab, currentcolor 4%, transparent));
  transition: border-color .12s, box-shadow .12s, background-color .12s;
}
.filled { border-color: var(--otp-line-filled, color-mix(in oklab, currentcolor 72%, transparent)) }
.good { --_mark: var(--_success) }
.bad { --_mark: var(--_error) }
.good .box { border-color: var(--_success) }
.bad .box { border-color: var(--_error); background: color-mix(in oklab, var(--_error) 7%, transparent) }
.field:focus-within .active { border-color: var(--_mark); box-shadow: 0 0 0 3.5px color-mix(in oklab, var(--_mark) 26%, transparent); outline: 2px solid transparent }
.clip { position: absolute; inset: 0; overflow: hidden; overflow: clip }
input {
  all: unset;
  box-sizing: border-box;
  position: absolute;
  inset: 0 auto 0 0;
  inline-size: calc(100% + 2 * var(--_step));
  padding-inline-start: calc((var(--_cell) - 1ch) / 2);
  font: 600 max(1rem, var(--_cell) * .46) / 1 var(--otp-font, ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace);
  font-variant-ligatures: none;
  letter-spacing: calc(var(--_step) - 1ch);
  white-space: pre;
  cursor: text;
  caret-color: var(--_accent);
}
input::selection { background: transparent; color: inherit }
input:autofill { -webkit-text-fill-color: currentcolor; transition: background-color 0s 99999s }
.off { opacity: .5 }
.message { margin: .625rem 0 0; font-size: .9375em }
.error { color: var(--_error) }
.success { color: var(--_success) }
.buttons { display: flex; flex-wrap: wrap; column-gap: 1.5rem }
button {
  all: unset;
  display: flex;
  align-items: center;
  inline-size: fit-content;
  min-block-size: 2.75rem;
  font-size: .9375em;
  font-weight: 600;
  color: var(--_accent);
  text-decoration: underline;
  text-decoration-thickness: 1px;
  text-underline-offset: .25em;
  font-variant-numeric: tabular-nums;
  border-radius: .25rem;
  cursor: pointer;
}
button:hover { text-decoration-thickness: 2px }
button:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px }
button:disabled { opacity: .5; cursor: default }
button[aria-disabled=true] { color: inherit; opacity: .72; font-weight: 400; text-decoration: none; cursor: default }
.live { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
@media (prefers-reduced-motion: no-preference) {
  .bad { animation: no .32s }
  @keyframes no { 20%, 60% { translate: -5px } 40%, 80% { translate: 5px } }
}
@media (forced-colors: active) {
  .field:focus-within .active { outline-color: Highlight }
  .bad .box { border-width: 3px }
  input { forced-color-adjust: none; color: CanvasText }
}
`;
