"use strict";
// Answers as the dashboard does, with the same program. Each question has a worker of its own, so that it can be ended when the next one comes.
{
  const program = fetch("playground.wasm").then((file) => file.arrayBuffer()).then((bytes) => WebAssembly.compile(bytes));

  const work = async (fields, signal) => {
    const question = { fields: String(fields), now: Date.now(), program: await program };
    signal?.throwIfAborted();
    const worker = new Worker("worker.js");
    try {
      return await new Promise((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = () => reject(new Error("worker.js cannot be loaded"));
        worker.postMessage(question);
      });
    } finally {
      worker.terminate();
    }
  };

  const problem = (text) => {
    const place = document.createElement("div");
    place.id = "playground-result";
    place.innerHTML = '<p class="flash bad" role="alert"></p>';
    place.firstChild.textContent = text;
    return place.outerHTML;
  };

  globalThis.answer = async (fields, signal) => {
    try {
      return (await work(fields, signal)) || problem("The playground failed. The console of the browser says why.");
    } catch (error) {
      if (signal?.aborted) throw error;
      return problem("The playground cannot be loaded: " + error.message);
    }
  };

  answer(location.search.slice(1)).then((text) => { document.getElementById("page").innerHTML = text; });
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    event.target.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
