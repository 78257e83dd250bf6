import { call, e164 } from "./api.js";
import { at, make } from "./json.js";
import { countryName } from "./words.js";

const fields = ["phone_number", "country_code", "line_type", "carrier", "mcc", "mnc", "number_ported"];

/** The form that looks a number up and lists what is known about it. */
export function startLookup() {
  at("lookup-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const input = at("lookup");
    const { status, body } = await call("GET", `/v1/lookup/${encodeURIComponent(e164(input.value))}`);
    const failed = status !== 200;
    at("lookup-error").textContent = failed ? body.message : "";
    input.ariaInvalid = String(failed);
    at("lookup-result").replaceChildren(...(failed ? [] : fields.map((name) => make("div", {}, make("dt", {}, name), value(name, body[name])))));
    if (failed) input.focus();
  });
}

function value(name, known) {
  if (known === undefined) return make("dd", { className: "quiet" }, "not available offline");
  return make("dd", {}, name === "country_code" ? `${known} · ${countryName(known)}` : String(known));
}
