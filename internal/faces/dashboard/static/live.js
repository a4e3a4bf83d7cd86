"use strict";
// Replaces the fragments of this page that have changed, as the server sends them. It stops while nobody looks, and at the button.
const address = document.body.dataset.stream;
const button = document.getElementById("live");
let source = null;
let wanted = true;

function replace(fragment) {
  const place = document.getElementById(fragment.id);
  if (!place) return;
  const active = document.activeElement;
  const within = place.contains(active) ? [...place.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")].indexOf(active) : -1;
  if (within >= 0 && active.matches("input, select, textarea")) return; // somebody types
  const open = [...place.querySelectorAll("details")].map((details) => details.open);
  place.innerHTML = fragment.html;
  tell(fragment.age);
  place.querySelectorAll("details").forEach((details, i) => { if (i < open.length) details.open = open[i]; });
  if (within >= 0) place.querySelectorAll("a, button, summary, input, select, textarea, [tabindex]")[within]?.focus({ preventScroll: true });
}

function subscribe() {
  const should = wanted && !document.hidden;
  if (should && !source) {
    source = new EventSource(address);
    source.addEventListener("fragment", (event) => replace(JSON.parse(event.data)));
    source.addEventListener("open", () => { button.textContent = "Live"; });
    source.addEventListener("error", () => { button.textContent = "Live: waits for the server"; });
  } else if (!should && source) {
    source.close();
    source = null;
  }
  button.setAttribute("aria-pressed", String(wanted));
}

button.hidden = false;
button.addEventListener("click", () => { wanted = !wanted; subscribe(); });
document.addEventListener("visibilitychange", subscribe);
addEventListener("pagehide", () => { source?.close(); source = null; });
addEventListener("pageshow", subscribe);
subscribe();
