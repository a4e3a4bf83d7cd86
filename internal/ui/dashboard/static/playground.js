"use strict";
// Asks for the result again when somebody has stopped typing, and puts it in its place. Without it the button does the same.
{
  let timer = 0;
  let asking = null;
  const fetched = async (body, signal) => (await fetch("", { method: "POST", body, signal })).text();

  const ask = async () => {
    const form = document.getElementById("playground");
    const result = document.getElementById("playground-result");
    asking?.abort();
    asking = new AbortController();
    try {
      const fields = new URLSearchParams(new FormData(form));
      const text = await (globalThis.answer ?? fetched)(fields, asking.signal);
      const found = new DOMParser().parseFromString(text, "text/html").getElementById("playground-result");
      if (!found) return;
      const open = [...result.querySelectorAll("details")].map((details) => details.open);
      result.replaceChildren(...found.childNodes);
      result.querySelectorAll("details").forEach((details, i) => { if (i < open.length) details.open = open[i]; });
    } catch (error) {
      if (error.name !== "AbortError") form.submit(); // the server tells what is wrong
    }
  };
  document.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 350); });
}
