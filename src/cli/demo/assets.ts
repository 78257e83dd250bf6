import api from "./page/api.js?raw";
import copy from "./page/copy.js?raw";
import explain from "./page/explain.js?raw";
import history from "./page/history.js?raw";
import icon from "./page/icon.svg?raw";
import html from "./page/index.html?raw";
import json from "./page/json.js?raw";
import lookup from "./page/lookup.js?raw";
import main from "./page/main.js?raw";
import phone from "./page/phone.js?raw";
import css from "./page/style.css?raw";
import verify from "./page/verify.js?raw";
import words from "./page/words.js?raw";

const scripts = { api, copy, explain, history, json, lookup, main, phone, verify, words };

/** The page's files by path. Their text is in the bundle, so the installed package needs no separate files. */
export const assets: ReadonlyMap<string, { readonly type: string; readonly text: string }> = new Map([
  ["/", { type: "text/html; charset=utf-8", text: html }],
  ["/page/style.css", { type: "text/css; charset=utf-8", text: css }],
  ["/page/icon.svg", { type: "image/svg+xml", text: icon }],
  ...Object.entries(scripts).map(([name, text]) => [`/page/${name}.js`, { type: "text/javascript; charset=utf-8", text }] as const),
]);
