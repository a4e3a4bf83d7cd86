"use strict";
// A page without a search leads to the list of models, which begins there.
const models = document.querySelector("nav a[href$='/models']");
function search() {
  const field = document.querySelector("[role=search] input:not([type=hidden])");
  field?.focus();
  field?.select();
  if (!field && models) location.href = models.href + "#search";
}

const dialog = document.getElementById("keys");
const keys = { "/": search, "?": () => dialog.showModal(), "n": () => document.querySelector("a[rel=next]")?.click() };
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("textarea, select, input:not([type=checkbox]), dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});
const keysButton = document.getElementById("keys-button");
keysButton.hidden = false;
keysButton.addEventListener("click", keys["?"]);
if (location.hash === "#search") search();
