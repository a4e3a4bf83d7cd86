'use strict';

// PUT and DELETE /documents/NAME.txt change a document and ask for a new index. GET /search?q=WORDS reads the index.

const { randomUUID } = require('node:crypto');
const { readFile, rename, rm, writeFile } = require('node:fs/promises');
const http = require('node:http');
const path = require('node:path');
const { buffer } = require('node:stream/consumers');
const { Client } = require('./refreshd.js');
const words = require('./words.js');

const { DOCUMENTS, INDEX, LISTEN } = process.env;
const refreshd = new Client({ by: 'application' });

/** `refresh: now` also starts another attempt behind one that is running: that may have read the old document. A `run` would be refused. */
function changed() {
  return refreshd.put('articles', {}, { policy: 'search-index', refresh: 'now' });
}

async function save(name, request) {
  const file = path.join(DOCUMENTS, name);
  const beside = `${file}.${randomUUID()}`; // of this request alone: another one may save the same document
  await writeFile(beside, await buffer(request));
  await rename(beside, file);
  await changed();
}

async function remove(name) {
  await rm(path.join(DOCUMENTS, name), { force: true });
  await changed();
}

/** The documents that have all the words, those that have them most often first. */
async function search(question) {
  const text = await readFile(INDEX, 'utf8').catch((error) => (error.code === 'ENOENT' ? '[]' : Promise.reject(error))); // not built yet
  const index = new Map(JSON.parse(text));
  const found = words(question).map((word) => new Map(index.get(word)));
  const all = [...(found[0]?.keys() ?? [])].filter((name) => found.every((documents) => documents.has(name)));
  const score = (name) => found.reduce((sum, documents) => sum + documents.get(name), 0);
  return all.sort((a, b) => score(b) - score(a));
}

async function answer(request) {
  const url = new URL(request.url, 'http://application');
  const [, name] = url.pathname.match(/^\/documents\/(\w[\w-]*\.txt)$/) ?? [];
  if (request.method === 'GET' && url.pathname === '/search') return [200, await search(url.searchParams.get('q') ?? '')];
  if (request.method === 'PUT' && name) return [202, await save(name, request)];
  if (request.method === 'DELETE' && name) return [202, await remove(name)];
  return [404, 'expected PUT or DELETE /documents/NAME.txt, or GET /search?q=WORDS'];
}

http.createServer(async (request, response) => {
  const [status, said = 'a new index is on its way'] = await answer(request).catch((error) => [500, error.message]);
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(said)}\n`);
}).listen(LISTEN.split(':')[1], LISTEN.split(':')[0], () => changed());
