import { attributes, reflecting } from "./attributes.js";
import { codeIn, digitsOf, placed } from "./code.js";
import { style } from "./style.js";
import type { OtpAnswer } from "./types.js";
import { codeFromMessage } from "./web-otp.js";
import { languageOf, triesLeft, waitingFor, wordsFor, wordsOf } from "./words.js";

/** Attributes that change with a response of the server. */
const news: readonly string[] = ["status", "next-retry-at", "remaining-checks", "remaining-retry"];

/** Statuses after which no message can follow. */
const over = /^(valid|already_validated|expired_auth|rate_limited|spam_detected|no_attempt|without_attempt)$/;

/** Statuses that are not errors. */
const tones = new Map(Object.entries({ pending: "info", approved: "info", denied: "info", valid: "success" }));

/** Milliseconds until the buttons are enabled again, unless a response sets another time. */
const pressPause = 3_000;

/** Seconds between two announcements of the remaining wait. */
const spokenEvery = 30;

/** On a server that renders pages, the class is defined but never used. */
const HTMLElement = (globalThis.HTMLElement ?? class {}) as typeof globalThis.HTMLElement;

export class OtpInput extends reflecting(HTMLElement) {
  static readonly formAssociated = true;
  static readonly observedAttributes = [...Object.values(attributes), "value", "lang", "aria-label", "aria-labelledby", "aria-describedby"];

  readonly #internals = this.attachInternals();
  readonly #label = part("label", "label", { htmlFor: "input" });
  readonly #boxes = part("span", "boxes", { ariaHidden: "true" });
  readonly #input = part("input", "input", { id: "input", inputMode: "numeric", autocomplete: "one-time-code", enterKeyHint: "done", spellcheck: false });
  readonly #field = part("div", "field", {}, this.#boxes, part("span", "clip", {}, this.#input));
  readonly #words = part("span", "words");
  readonly #tries = part("span", "tries");
  readonly #message = part("p", "message", { id: "message", dir: "auto" }, this.#words, " ", this.#tries);
  /** The description that the page refers to. */
  readonly #about = part("span", "about", { id: "about", hidden: true });
  readonly #resend = part("button", "resend", { type: "button", dir: "auto" });
  readonly #call = part("button", "call", { type: "button", dir: "auto" });
  readonly #buttons = part("div", "buttons", {}, this.#resend, this.#call);
  /** Visually hidden, and announced when it changes. */
  readonly #live = part("div", "live", { role: "status" });
  readonly #root = part("div", "root", {}, this.#label, part("div", "room", {}, this.#field), this.#message, this.#about, this.#buttons, this.#live);
  /** Any ancestor may have a `lang`. */
  readonly #languages = new MutationObserver(() => this.#plan());
  #lang = "en";
  #answer: OtpAnswer | null = null;
  /** The digits at the last change, as the form has them. The text of the field may have more during a composition. */
  #value = "";
  /** The same, at the last `change` event, or as the page has set it. */
  #reported = "";
  /** Whether the last response was about another code than the current one. */
  #edited = false;
  /** The code that the last response was about; empty if unknown. */
  #judged = "";
  /** The first code since the last response with which the form was submitted, or that was completed without a form. */
  #asked: string | undefined;
  /**
   * Whether the page or its button has submitted the form with the current code, without a response so far. If so,
   * Enter after the last digit does not submit it again.
   */
  #sent = false;
  #off = false;
  /** The server's clock minus this device's, in ms. */
  #skew = 0;
  /** This device's clock at the last tick of a countdown, in ms since the epoch; 0: none since the last `created_at`. */
  #ticked = 0;
  /** When another message can be requested, in ms since the epoch by the server's clock; undefined: never. */
  #next: number | undefined;
  /** The same for a call. */
  #nextCall = 0;
  /** The channel of the last request. */
  #channel: "voice" | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #planned = false;
  #aloud = false;
  /** Ends the wait for a message that the browser reads. */
  #otp: AbortController | undefined;
  /** Removes the listener of the form. */
  #ofForm: AbortController | undefined;

  constructor() {
    super();
    // Like every field, it is sent even if nothing was entered.
    this.#internals.setFormValue("");
    const shadow = this.attachShadow({ mode: "open", delegatesFocus: true });
    shadow.adoptedStyleSheets = [styleSheet()];
    shadow.append(this.#root);
    this.#input.setAttribute("aria-describedby", "about message");
    this.#input.setAttribute("autocorrect", "off");
    this.#input.addEventListener("beforeinput", (event) => this.#insert(event));
    this.#input.addEventListener("input", (event) => {
      // Dispatched again after it is handled, so that a page bound to the value has it before `otp-complete`.
      event.stopPropagation();
      this.#typed(event as InputEvent);
    });
    this.#input.addEventListener("compositionend", (event) => this.#typed(event));
    this.#input.addEventListener("keydown", ({ key, isComposing, repeat }) => {
      if (key !== "Enter" || isComposing || repeat) return;
      this.#changed();
      if (!this.#sent && (this.#edited || this.status !== "valid")) this.#submit();
      this.#sent = false;
    });
    this.#input.addEventListener("change", () => this.#changed());
    this.#input.addEventListener("focus", () => {
      // The texts outside may have changed without an event.
      this.#render();
      if (this.#wrong) this.select();
      // Browsers serve only a page's last request, and another field may have made one since.
      if (this.value.length < this.length) this.#listen();
    });
    for (const type of ["keyup", "pointerup", "select", "selectionchange"]) this.#input.addEventListener(type, () => this.#showBoxes());
    this.#resend.addEventListener("click", () => this.#ask(this.#resend));
    this.#call.addEventListener("click", () => this.#ask(this.#call, "voice"));
  }

  get value(): string {
    return this.#value;
  }

  /** As with every field, setting the value in code fires no event. */
  set value(value: string | null | undefined) {
    this.#input.value = digitsOf(`${value ?? ""}`).slice(0, this.length);
    this.#take(false);
    this.#reported = this.value;
  }

  get answer(): OtpAnswer | null {
    return this.#answer;
  }

  set answer(answer: OtpAnswer | null | undefined) {
    this.#answer = answer ?? null;
    const { created_at, status, next_retry_at, remaining_checks, remaining_retry, carrier_refused } = answer ?? {};
    if (timeOf(created_at)) {
      this.#skew = timeOf(created_at) - Date.now();
      this.#ticked = 0;
    }
    const reported = status ?? "";
    this.status = carrier_refused && tones.get(reported) === "info" ? "carrier_refused" : reported;
    // The response that denies a call gives the time of the next call, not of the next message.
    if (this.#channel && this.status === "denied") this.#nextCall = timeOf(next_retry_at);
    // A fact that the response lacks keeps its value.
    else this.nextRetryAt = next_retry_at ?? this.nextRetryAt;
    this.remainingChecks = remaining_checks ?? this.remainingChecks;
    this.remainingRetry = remaining_retry ?? this.remainingRetry;
  }

  get form(): HTMLFormElement | null {
    return this.#internals.form;
  }

  get labels(): NodeList {
    return this.#internals.labels;
  }

  get validity(): ValidityState {
    return this.#internals.validity;
  }

  get validationMessage(): string {
    return this.#internals.validationMessage;
  }

  get willValidate(): boolean {
    return this.#internals.willValidate;
  }

  checkValidity(): boolean {
    return this.#internals.checkValidity();
  }

  reportValidity(): boolean {
    return this.#internals.reportValidity();
  }

  select(): void {
    this.#input.select();
    this.#showBoxes();
  }

  connectedCallback(): void {
    // Properties set before the element was defined hide the accessors.
    for (const name of [...Object.keys(attributes), "value", "answer"]) {
      if (!Object.hasOwn(this, name)) continue;
      const value: unknown = Reflect.get(this, name);
      Reflect.deleteProperty(this, name);
      Reflect.set(this, name, value);
    }
    this.#languages.observe(this.ownerDocument, { subtree: true, attributeFilter: ["lang"] });
    this.#render();
    this.#listen();
  }

  disconnectedCallback(): void {
    this.#languages.disconnect();
    clearTimeout(this.#timer);
    this.#hush();
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    // A property set before the element was defined takes precedence over the attribute.
    if (name === "value" && !Object.hasOwn(this, name)) this.value = value;
    if (name === "length") this.value = this.value;
    if (name === "next-retry-at") {
      this.#next = value ? timeOf(value) : undefined;
      if (value !== before) this.#nextCall = timeOf(value);
    }
    const isNews = news.includes(name);
    if (isNews) {
      this.#judged = this.#asked ?? this.value;
      this.#edited = this.value !== this.#judged;
      this.#sent = false;
    }
    this.#validate();
    this.#plan(isNews);
  }

  formAssociatedCallback(form: HTMLFormElement | null): void {
    this.#ofForm?.abort();
    this.#ofForm = new AbortController();
    const sent = () => {
      this.#sent = true;
      this.#asked ??= this.value;
      this.#hush();
    };
    form?.addEventListener("submit", sent, { signal: this.#ofForm.signal });
  }

  formDisabledCallback(off: boolean): void {
    // At once, because the page may focus the field next.
    this.#off = this.#input.disabled = this.#resend.disabled = this.#call.disabled = off;
    if (off) this.#hush();
    else this.#listen();
    this.#plan();
  }

  /** React resets a form right after it has rendered the response to it: a response that is not shown yet stays. */
  formResetCallback(): void {
    if (!this.#planned || !this.#aloud) this.status = "";
    this.value = this.getAttribute("value");
  }

  formStateRestoreCallback(state: unknown): void {
    if (typeof state === "string") this.value = state;
  }

  /** The status to show. After the last wrong code: that there are no tries left. */
  get #shownStatus(): string {
    return this.status === "invalid" && this.remainingChecks === 0 ? "rate_limited" : this.status;
  }

  /** Whether the current code was reported wrong. */
  get #wrong(): boolean {
    return this.#shownStatus === "invalid" && !this.#edited;
  }

  /** Reduces text that is about to be inserted to digits, by a command, so that the browser can undo it. */
  #insert(event: InputEvent): void {
    const text = event.data ?? event.dataTransfer?.getData("text/plain");
    // Input of an input method cannot be cancelled.
    if (!text || !event.cancelable) return;
    const { value, selectionStart, selectionEnd } = this.#input;
    const { digits, from, to } = placed(text, value, selectionStart ?? 0, selectionEnd ?? 0, this.length);
    if (digits === text && from === selectionStart && to === selectionEnd) return;
    event.preventDefault();
    // The first digits of a phone number are not a code, but would be checked as one.
    const isLonger = digitsOf(text).length > this.length && codeIn(text, this.length) === undefined;
    if (digits === "" || isLonger) return;
    this.#input.setSelectionRange(from, to);
    if (document.execCommand("insertText", false, digits)) return;
    this.#input.setRangeText(digits, from, to, "end");
    this.#take(true);
  }

  /**
   * Handles a change of the field. Input without a previous event may have any form: composed digits of another script,
   * an autofilled "123-456".
   */
  #typed({ data, isComposing, inputType }: Partial<InputEvent>): void {
    const { value, selectionStart } = this.#input;
    if (!/^\d*$/.test(value) || value.length > this.length) {
      // Text that an input method is still composing must not change.
      if (isComposing) return;
      const before = value.slice(0, selectionStart ?? undefined);
      const [text, start] = data && before.endsWith(data) ? [data, before.length - data.length] : [value, 0];
      const rest = value.slice(0, start) + value.slice(start + text.length);
      const { digits, from, to } = placed(text, rest, start, start, this.length);
      this.#input.value = rest.slice(0, from) + digits + rest.slice(to);
      this.#input.setSelectionRange(from + digits.length, from + digits.length);
    }
    // A code restored by undo is not checked again.
    this.#take(true, !inputType?.startsWith("history"));
  }

  #take(byPerson: boolean, completes = byPerson): void {
    const { value } = this.#input;
    if (value === this.#value) return;
    this.#value = value;
    this.#sent = false;
    // A page that only empties the field, or sets the code after its status, has set no other code.
    if (byPerson || (value !== "" && this.#judged !== "" && value !== this.#judged)) this.#edited = true;
    if (!byPerson) this.#asked = undefined;
    this.#internals.setFormValue(value);
    this.#validate();
    this.#plan();
    this.#showBoxes();
    const whole = value.length === this.length;
    if (whole) this.#hush();
    if (byPerson) this.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true }));
    if (!completes || !whole) return;
    if (!this.form) this.#asked ??= value;
    this.#fire("otp-complete", { code: value });
  }

  /** Fires `change`, unless the page knows the value. */
  #changed(): void {
    if (this.#reported === this.value) return;
    this.#reported = this.value;
    this.dispatchEvent(new Event("change", { bubbles: true }));
  }

  /** Submits the form as Enter in a browser's field does: with the first submit button, and not while it is disabled. */
  #submit(): void {
    const [button] = [...(this.form?.elements ?? [])].filter((one) => (one as HTMLButtonElement).type === "submit");
    if (button === undefined) this.form?.requestSubmit();
    else (button as HTMLButtonElement).click();
  }

  #ask(button: HTMLButtonElement, channel?: "voice"): void {
    if (isWaiting(button)) return;
    this.#channel = channel;
    this.#next = Date.now() + this.#skew + pressPause;
    // A call that was denied may wait longer.
    this.#nextCall = Math.max(this.#nextCall, this.#next);
    this.#tick();
    this.#listen();
    this.#fire("otp-resend", { channel });
  }

  #fire(type: string, detail?: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { bubbles: true, composed: true, detail }));
  }

  async #listen(): Promise<void> {
    if (this.#otp !== undefined || this.#off || !this.isConnected || over.test(this.#shownStatus)) return;
    const otp = new AbortController();
    this.#otp = otp;
    const code = await codeFromMessage(otp.signal);
    if (otp.signal.aborted) return;
    this.#otp = undefined;
    if (code === undefined) return;
    this.#input.value = placed(code, "", 0, 0, this.length).digits;
    this.#take(true);
  }

  #hush(): void {
    this.#otp?.abort();
    this.#otp = undefined;
  }

  #validate(): void {
    const words = wordsOf(this.#lang);
    const missing = this.required && this.value === "";
    const short = this.value !== "" && this.value.length < this.length;
    if (missing || short) this.#internals.setValidity({ valueMissing: missing, tooShort: short }, words.incomplete, this.#input);
    else if (this.#wrong && this.value !== "") this.#internals.setValidity({ customError: true }, words.invalid, this.#input);
    else this.#internals.setValidity({});
  }

  /** Renders once after all changes: a response sets several attributes and is announced once. */
  #plan(aloud = false): void {
    this.#aloud ||= aloud;
    if (this.#planned) return;
    this.#planned = true;
    queueMicrotask(() => {
      this.#planned = false;
      if (!this.isConnected) return;
      const isNew = this.#call.hidden;
      this.#render();
      if (!this.#aloud) return;
      this.#aloud = false;
      // Only now, because a response sets several attributes.
      this.#asked = undefined;
      const wait = isWaiting(this.#resend) ? this.#resend.textContent : "";
      const call = !this.#call.hidden && (isNew || this.#nextCall !== this.#next) ? this.#call.textContent : "";
      this.#say(this.#words.textContent, this.#tries.textContent, wait, call);
      if (this.#wrong && this.shadowRoot?.activeElement === this.#input) this.select();
      if (over.test(this.#shownStatus)) this.#hush();
      else if (tones.get(this.#shownStatus) === "info") this.#listen();
    });
  }

  #render(): void {
    this.#lang = languageOf(languageAbove(this));
    const words = wordsOf(this.#lang);
    const shown = this.#shownStatus;
    const tone = shown === "" ? "" : (tones.get(shown) ?? "error");
    this.#root.lang = this.#lang;
    this.#label.hidden = this.label === "";
    this.#label.textContent = this.label;
    const name = this.label === "" ? this.getAttribute("aria-label") || textOf(this.labels) || words.label : null;
    this.#input.ariaLabel = this.#textBy("aria-labelledby") || name;
    this.#about.textContent = this.#textBy("aria-describedby");
    this.#input.ariaInvalid = `${this.#wrong}`;
    this.#input.ariaRequired = `${this.required}`;
    const marks = { off: this.#off, bad: tone === "error" && !this.#edited, good: tone === "success" };
    for (const [mark, on] of Object.entries(marks)) this.#field.classList.toggle(mark, on);
    this.#message.hidden = shown === "";
    this.#message.className = `message ${tone}`;
    this.#message.setAttribute("part", this.#message.className);
    this.#words.textContent = shown === "" ? "" : wordsFor(this.#lang, shown);
    this.#tries.textContent = shown === "invalid" && this.remainingChecks !== null ? triesLeft(this.#lang, this.remainingChecks) : "";
    this.#validate();
    this.#showBoxes();
    this.#tick();
  }

  /**
   * The text of the elements that an attribute refers to. They are outside the shadow tree, which cannot refer to them.
   */
  #textBy(attribute: string): string {
    const ids = this.getAttribute(attribute)?.split(/\s+/) ?? [];
    return textOf(ids.map((id) => (this.getRootNode() as Document).getElementById(id)));
  }

  #showBoxes(): void {
    const { length } = this;
    this.#root.style.setProperty("--_n", `${length}`);
    while (this.#boxes.childElementCount > length) this.#boxes.lastChild?.remove();
    while (this.#boxes.childElementCount < length) this.#boxes.append(part("span", "box"));
    const { selectionStart, selectionEnd, value } = this.#input;
    const from = Math.min(selectionStart ?? 0, length - 1);
    const to = Math.max(selectionEnd ?? 0, from + 1);
    for (const [at, box] of [...this.#boxes.children].entries()) {
      box.className = `box${at < value.length ? " filled" : ""}${at >= from && at < to ? " active" : ""}`;
      box.setAttribute("part", box.className);
    }
  }

  /** Updates the buttons and their texts during a wait. */
  #tick(): void {
    clearTimeout(this.#timer);
    const { resend, call, wait, ready } = wordsOf(this.#lang);
    const { callAfter, remainingRetry, retries } = this;
    const device = Date.now();
    // A clock that was set back would lengthen the wait.
    this.#skew += Math.max(0, this.#ticked - device);
    const now = device + this.#skew;
    const isOver = this.#next === undefined || remainingRetry === 0 || over.test(this.#shownStatus);
    const sent = 1 + retries - (remainingRetry ?? retries);
    const left = [(this.#next ?? 0) - now, this.#nextCall - now] as const;
    const ofMessage = this.#show(this.#resend, isOver, left[0], resend, wait, ready);
    const ofCall = this.#show(this.#call, isOver || callAfter === null || sent < callAfter, left[1], call, `${call} ({when})`, call);
    if (ofMessage || ofCall) this.#say(ofMessage || ofCall);
    const ticks = left.filter((one) => one > 0).map((one) => one % 1000 || 1000);
    this.#ticked = ticks.length && device;
    if (!isOver && ticks.length > 0) this.#timer = setTimeout(() => this.#tick(), Math.min(...ticks));
  }

  /** Updates a button that is enabled after a wait in ms. Returns what to announce. */
  #show(button: HTMLButtonElement, hidden: boolean, wait: number, text: string, waiting: string, ready: string): string {
    const seconds = Math.ceil(wait / 1000);
    const wasWaiting = isWaiting(button);
    const waits = !hidden && seconds > 0;
    button.hidden = hidden;
    button.ariaDisabled = `${waits}`;
    const shown = waits ? waitingFor(this.#lang, seconds, waiting) : text;
    if (shown === button.textContent) return "";
    button.textContent = shown;
    if (!wasWaiting || hidden) return "";
    return !waits ? ready : seconds % spokenEvery === 0 ? shown : "";
  }

  /** Announces texts, even if they are the same as before. */
  #say(...texts: (string | null)[]): void {
    const text = texts.filter(Boolean).join(" ");
    this.#live.textContent = this.#live.textContent === text ? `${text}\u00a0` : text;
  }
}

/** An element of the shadow tree, with its name for `::part()`. */
function part<T extends keyof HTMLElementTagNameMap>(
  tag: T,
  name: string,
  properties: Partial<HTMLElementTagNameMap[T]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[T] {
  const element = Object.assign(document.createElement(tag), properties);
  element.className = name;
  element.setAttribute("part", name);
  element.append(...children);
  return element;
}

let sheet: CSSStyleSheet | undefined;

/**
 * One style sheet for all elements. It is constructed in the page, so a policy against inline styles does not block it.
 */
function styleSheet(): CSSStyleSheet {
  if (sheet === undefined) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
  }
  return sheet;
}

/** Milliseconds since the epoch; 0 if the text is not a time. */
function timeOf(text: string | null | undefined): number {
  return Date.parse(text ?? "") || 0;
}

function isWaiting(button: HTMLButtonElement): boolean {
  return button.ariaDisabled === "true";
}

/** The `lang` of the nearest element that has one, across shadow roots; else the user's language. */
function languageAbove(element: Element): string {
  for (let here: Element | undefined = element; here !== undefined; here = (here.getRootNode() as Partial<ShadowRoot>).host) {
    const lang = here.closest("[lang]")?.getAttribute("lang");
    if (lang) return lang;
  }
  return navigator.language;
}

function textOf(nodes: Iterable<Node | null>): string {
  return [...nodes]
    .map((node) => node?.textContent?.trim())
    .join(" ")
    .trim();
}
