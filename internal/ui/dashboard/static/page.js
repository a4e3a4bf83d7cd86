"use strict";
// Tells how far away instants are, as time goes by, and offers all zones. Without it the page says what was so when it was sent.
const units = [["w", 604800e3], ["d", 86400e3], ["h", 3600e3], ["m", 60e3]];
const born = new WeakMap();

function distance(away) {
  const unit = units.find(([, size]) => Math.abs(away) >= size);
  if (!unit) return away > 0 ? "in a moment" : "just now";
  const length = Math.floor(Math.abs(away) / unit[1]) + unit[0];
  return away < 0 ? length + " ago" : "in " + length;
}

// The clock of this machine may be wrong: what counts is the time since the server has sent the instant.
function tell(age = 0) {
  for (const time of document.querySelectorAll("time[data-from]")) {
    if (!born.has(time)) born.set(time, performance.now() - age);
    const text = distance(Date.parse(time.dateTime) - time.dataset.from - performance.now() + born.get(time));
    if (time.textContent !== text) time.textContent = text;
  }
}

function offerZones(select) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const [label, names] of [["This browser", [own]], ["All", Intl.supportedValuesOf("timeZone")]]) {
    const group = select.appendChild(document.createElement("optgroup"));
    group.label = label;
    for (const name of names) if (name) group.append(new Option(name));
  }
}

tell();
setInterval(() => { if (!document.hidden) tell(); }, 5000);
document.addEventListener("visibilitychange", () => tell());
const zones = document.getElementById("zone");
if (zones) offerZones(zones);

const selectAll = document.getElementById("select-all");
if (selectAll) selectAll.hidden = false;
selectAll?.addEventListener("click", () => {
  const boxes = [...document.querySelectorAll("input[form=selected]")];
  const all = boxes.every((e) => e.checked);
  for (const box of boxes) box.checked = !all;
});
