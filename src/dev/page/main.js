import { connect } from "./api.js";
import { copies } from "./copy.js";
import { startHistory } from "./history.js";
import { startLookup } from "./lookup.js";
import { startPhone } from "./phone.js";
import { startVerification } from "./verify.js";

const at = (id) => document.getElementById(id);

await showSession();
startLookup();
const { fillCode } = startVerification();
const events = new EventSource("/dev/events");
events.onopen = () => showConnection(true);
events.onerror = () => showConnection(false);
startHistory(events);
startPhone(events, fillCode);
for (const button of document.querySelectorAll("[data-copy]")) copies(button, at(button.dataset.copy));

async function showSession() {
  const { api_key, customer_uuid, carrier, hasty } = await connect();
  if (carrier) at("reach").textContent = `Messages are really sent, by ${carrier}; the phone on this page shows them too.`;
  at("base-url").textContent = location.origin;
  at("api-key").textContent = api_key;
  at("customer-uuid").textContent = customer_uuid;
  at("hasty-lifetime").textContent = hasty.lifetime;
}

/** A demo that was started anew has another key: asked for whenever it can be reached again. */
async function showConnection(reached) {
  if (reached) await showSession();
  at("connection").classList.toggle("lost", !reached);
  at("connection-text").textContent = reached ? "Local demo" : "The demo is not running";
}
