/** Who or what is called. */
export interface Callee {
  /** `mailbox`: a machine that records everything it hears and presses no key. */
  readonly kind: "person" | "mailbox";
  /** Whether machine detection recognizes the mailbox. Default: `true`. */
  readonly recognised?: boolean;
  /** The key that the callee presses when first asked for one. */
  readonly presses?: string;
  /** Hangs up after this many seconds. Default: listens to the end. */
  readonly patience?: number;
}

/** What a callee heard during a call. */
export interface Listened {
  /** Everything that was said, in order, repetitions included. */
  readonly heard: readonly { readonly text: string; readonly language: string }[];
  /** Seconds from the answer to the end. */
  readonly seconds: number;
  /** Statuses with which the receipts route responded to events and keys. */
  readonly answers: readonly number[];
}

/** The end of a call: the callee hangs up, or its time is over. */
export class CallEnds extends Error {}

/** The speech of a call, on a separate clock: about 14 letters a second, and half a second for a digit. */
export class Line {
  readonly heard: { text: string; language: string }[] = [];
  seconds = 0;

  constructor(
    private readonly callee: Callee,
    private readonly limit: number,
  ) {}

  wait(seconds: number): void {
    this.seconds += seconds;
    const most = Math.min(this.limit, this.callee.patience ?? Number.POSITIVE_INFINITY);
    if (this.seconds < most) return;
    this.seconds = most;
    throw new CallEnds();
  }

  say(text: string, language: string): void {
    this.heard.push({ text, language });
    this.wait(text.replace(/\d/g, "").length / 14 + (text.match(/\d/g) ?? []).length / 2);
  }
}

export interface XmlNode {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly (XmlNode | string)[];
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
function unescaped(text: string): string {
  if (/[<>]/.test(text) || /&(?!(amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i.test(text)) throw new Error(`not well-formed: ${text}`);
  return text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (_, hex, decimal, name) =>
    name !== undefined ? entities[name]! : String.fromCodePoint(hex !== undefined ? Number.parseInt(hex, 16) : Number(decimal)),
  );
}

/** Parses one element as strictly as a vendor's parser does. */
export function parseXml(source: string): XmlNode {
  const tag = /<(\/?)([A-Za-z][\w-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/y;
  const text = source.replace(/^\s*<\?xml [^?]*\?>\s*/, "").trim();
  const open: { name: string; attributes: Record<string, string>; children: (XmlNode | string)[] }[] = [{ name: "", attributes: {}, children: [] }];
  for (let at = 0; at < text.length; ) {
    if (text[at] !== "<") {
      const end = text.indexOf("<", at) < 0 ? text.length : text.indexOf("<", at);
      open.at(-1)!.children.push(unescaped(text.slice(at, end)));
      at = end;
      continue;
    }
    tag.lastIndex = at;
    const found = tag.exec(text);
    if (found === null) throw new Error(`not well-formed at ${text.slice(at, at + 40)}`);
    at = tag.lastIndex;
    const [, closes, name, attributes, alone] = found as unknown as [string, string, string, string, string];
    if (closes === "/") {
      const done = open.pop();
      if (done?.name !== name || open.length === 0) throw new Error(`</${name}> closes nothing`);
      open.at(-1)!.children.push(done);
    } else {
      const node = {
        name,
        attributes: Object.fromEntries([...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key, value]) => [key!, unescaped(value!)])),
        children: [],
      };
      if (alone === "/") open.at(-1)!.children.push(node);
      else open.push(node);
    }
  }
  const [root, ...more] = open[0]!.children;
  if (open.length !== 1 || root === undefined || typeof root === "string" || more.length > 0) throw new Error("not one element");
  return root;
}

export const textOf = (node: XmlNode): string => node.children.map((child) => (typeof child === "string" ? child : textOf(child))).join("");
export const elementsOf = (node: XmlNode): XmlNode[] =>
  node.children.flatMap((child) => {
    if (typeof child !== "string") return [child];
    if (child.trim() !== "") throw new Error(`text between elements: ${child}`);
    return [];
  });
