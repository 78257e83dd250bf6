import { connect } from "./api.js";
import { showLastCall } from "./last-call.js";
import { startLookup } from "./lookup.js";
import { startPhone } from "./phone.js";
import { startVerification } from "./verify.js";

const at = (id) => document.getElementById(id);

await showSession();
showLastCall();
startLookup();
const { fillCode } = startVerification();
startPhone({ onCode: fillCode, onConnection: showConnection });
copyButtons();

async function showSession() {
  const { api_key, customer_uuid, carrier } = await connect();
  if (carrier) at("reach").textContent = `Messages are really sent, by ${carrier}; the phone on this page shows them too.`;
  at("base-url").textContent = location.origin;
  at("api-key").textContent = api_key;
  at("customer-uuid").textContent = customer_uuid;
}

/** A demo that was started anew has another key: asked for whenever it can be reached again. */
async function showConnection(reached) {
  if (reached) await showSession();
  at("connection").classList.toggle("lost", !reached);
  at("connection-text").textContent = reached ? "Local demo" : "The demo is not running";
}

function copyButtons() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = at(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
        at("announce").textContent = "Copied to the clipboard.";
        setTimeout(() => {
          button.textContent = "Copy";
          at("announce").textContent = "";
        }, 1_500);
      } catch {
        // No access to the clipboard (plain http from another machine): select the text instead.
        getSelection().selectAllChildren(source);
      }
    });
  }
}
