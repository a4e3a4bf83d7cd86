const { writeFile } = require('node:fs/promises');
const { Worker } = require('refreshd');

new Worker(async (attempt) => {
  const answer = await fetch(attempt.payload.input_url, { signal: attempt.signal });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  await writeFile(`${attempt.uid}.csv`, await answer.text());
}).run();
