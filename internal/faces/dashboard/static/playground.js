"use strict";
// Asks for the result again when somebody has stopped typing, and puts it in its place. Without it the button does the same.
{
  const form = document.getElementById("playground");
  const result = document.getElementById("playground-result");
  let timer = 0;
  let asking = null;

  const ask = async () => {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), signal: asking.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("playground-result");
      if (!found) return;
      const open = [...result.querySelectorAll("details")].map((details) => details.open);
      result.replaceChildren(...found.childNodes);
      result.querySelectorAll("details").forEach((details, i) => { if (i < open.length) details.open = open[i]; });
    } catch (error) {
      if (error.name !== "AbortError") form.submit(); // the server tells what is wrong
    }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 350); });
}
