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
  const filled = [...place.querySelectorAll("input:not([type=checkbox]), textarea")].some((e) => e.value !== e.defaultValue);
  if (filled || place.contains(active) && active.matches("input:not([type=checkbox]), select, textarea")) return; // somebody types
  const focused = place.contains(active) && all(place, focusable).find(([, e]) => e === active);
  const open = new Map(all(place, "details").map(([name, details]) => [name, details.open]));
  const picked = new Set([...place.querySelectorAll("input:checked")].map((e) => e.value));
  place.innerHTML = fragment.html;
  for (const box of place.querySelectorAll("input[type=checkbox]")) box.checked = picked.has(box.value);
  tell(fragment.age);
  for (const [name, details] of all(place, "details")) details.open = open.get(name) ?? details.open;
  if (focused) all(place, focusable).find(([name]) => name === focused[0])?.[1].focus({ preventScroll: true });
}

const focusable = "a, button, summary, input, select, textarea, [tabindex]";

// Rows come and go: what has a label or leads somewhere is known by that and by how many alike stand before it, and other things by their place. So
// nobody confirms what another row asks.
function all(place, selector) {
  const alike = {};
  return [...place.querySelectorAll(selector)].map((e, i) => {
    const whole = e.matches("summary") ? e.parentElement : e;
    const label = whole.getAttribute("aria-label") ?? whole.querySelector("[aria-label]")?.getAttribute("aria-label");
    const name = e.localName + " " + (label ?? e.getAttribute("href") ?? i);
    alike[name] = (alike[name] ?? 0) + 1;
    return [name + " " + alike[name], e];
  });
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
