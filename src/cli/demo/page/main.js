import { connect } from "./api.js";
import { copies } from "./copy.js";
import { startHistory } from "./history.js";
import { at } from "./json.js";
import { startLookup } from "./lookup.js";
import { startPhone } from "./phone.js";
import { startVerification } from "./verify.js";

await showSession();
startLookup();
const fillCode = startVerification();
const events = new EventSource("/dev/events");
events.onopen = () => showConnection(true);
events.onerror = () => showConnection(false);
startHistory(events);
startPhone(events, fillCode);
for (const button of document.querySelectorAll("[data-copy]")) copies(button, at(button.dataset.copy));

async function showSession() {
  const { api_key, customer_uuid, carrier, hasty } = await connect();
  if (carrier) at("reach").textContent = `Messages are really sent through ${carrier}, and also appear on the phone on this page.`;
  at("base-url").value = location.origin;
  at("api-key").value = api_key;
  at("customer-uuid").value = customer_uuid;
  at("hasty-lifetime").textContent = hasty.lifetime;
}

/** A restarted demo has another key, so the session is read on every connection. */
async function showConnection(open) {
  if (open) await showSession();
  at("connection").className = `badge ${open ? "good" : "bad"}`;
  at("connection").textContent = open ? "Local demo" : "The demo is not running";
}
