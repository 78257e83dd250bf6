import { call, e164 } from "./api.js";

const countryNames = new Intl.DisplayNames(["en"], { type: "region" });
const fields = ["phone_number", "country_code", "line_type", "carrier", "mcc", "mnc", "number_ported"];

/** The panel that asks Lookup and lists what is known of a number. */
export function startLookup() {
  const form = document.getElementById("lookup-form");
  const input = document.getElementById("lookup");
  const fault = document.getElementById("lookup-error");
  const result = document.getElementById("lookup-result");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { status, body } = await call("GET", `/v1/lookup/${encodeURIComponent(e164(input.value))}`);
    const failed = status !== 200;
    fault.textContent = failed ? body.message : "";
    input.setAttribute("aria-invalid", String(failed));
    result.replaceChildren(...(failed ? [] : fields.flatMap((name) => pair(name, body[name]))));
    if (failed) input.focus();
  });
}

function pair(name, value) {
  const term = document.createElement("dt");
  const text = document.createElement("dd");
  term.textContent = name;
  text.textContent = value === undefined ? "not known offline" : name === "country_code" ? `${value} · ${countryNames.of(value)}` : String(value);
  text.classList.toggle("unknown", value === undefined);
  return [term, text];
}
