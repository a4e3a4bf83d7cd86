'use strict';

// Builds an index of all documents: word → [[document, how often], …]. Readers see the old index or the new one, both whole.

const { readdir, readFile, rename, rm, writeFile } = require('node:fs/promises');
const path = require('node:path');
const { Failure, Worker } = require('./refreshd.js');
const words = require('./words.js');

const { DOCUMENTS, INDEX } = process.env;

async function refresh(attempt) {
  const names = (await readdir(DOCUMENTS)).filter((name) => name.endsWith('.txt')).sort();
  const index = new Map();
  for (const [i, name] of names.entries()) {
    attempt.check(); // throws once the attempt no longer counts
    attempt.status(`${i} of ${names.length} documents`, (100 * i) / names.length);
    add(index, name, await read(attempt, name));
  }
  await replace(attempt, JSON.stringify([...index]));
  attempt.status(`${names.length} documents, ${index.size} words`, 100);
}

async function read(attempt, name) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(path.join(DOCUMENTS, name), { signal: attempt.signal }));
  } catch (error) {
    if (error.code === 'ENOENT') return ''; // removed meanwhile
    if (error.code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    const reason = `${name} is no text in UTF-8`;
    attempt.status(`The search finds the same as before: ${reason}.`); // for the owner
    throw new Failure(reason, { errorType: 'bad_document' });
  }
}

function add(index, name, text) {
  const counts = new Map();
  for (const word of words(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) {
    if (!index.has(word)) index.set(word, []);
    index.get(word).push([name, count]);
  }
}

/** Writes beside the index and renames, which is one step. The name is the attempt's own: another one may still be writing. */
async function replace(attempt, text) {
  const beside = `${INDEX}.${attempt.attemptUid}`;
  try {
    await writeFile(beside, text, { signal: attempt.signal, flush: true });
    attempt.check();
    await rename(beside, INDEX);
  } finally {
    await rm(beside, { force: true });
  }
}

new Worker(refresh, { concurrency: 1 }).run();
