"use strict";
importScripts("wasm_exec.js");
onmessage = async ({ data }) => {
  globalThis.question = data;
  const go = new Go();
  try {
    await go.run(await WebAssembly.instantiate(data.program, go.importObject));
  } finally {
    postMessage(globalThis.answer);
  }
};
