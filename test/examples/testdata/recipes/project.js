'use strict';

// What a test does with examples/express: ACTION [ID|NAME] [URL].

const { once } = require('node:events');
const { Pool } = require('pg');

const feeds = require(`${process.env.RECIPE}/feeds.js`);
const app = require(`${process.env.RECIPE}/app.js`);

async function ask(server, method, path, body) {
  const answer = await fetch(`http://127.0.0.1:${server.address().port}${path}`, {
    method, body: body && JSON.stringify(body), headers: { 'content-type': 'application/json', connection: 'close' },
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return text;
}

async function main(action, first, url) {
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sql = (text) => new Pool().query(text);
  const add = async () => console.log(JSON.parse(await ask(server, 'POST', '/feeds', { name: first, url })).id);
  const actions = {
    create: () => sql('CREATE TABLE feeds (id serial PRIMARY KEY, name text, url text)'),
    save: add,
    die: () => {
      feeds.refreshd.put = () => process.exit(3);
      return add();
    },
    rollback: () => feeds.commit(async (db) => {
      console.log(await feeds.add(db, { name: first, url }));
      throw new Error('after the row was written');
    }).catch(() => {}),
    reconcile: () => require(`${process.env.RECIPE}/reconcile.js`),
    page: async () => console.log(await ask(server, 'GET', '/feeds')),
    delete: () => ask(server, 'DELETE', `/feeds/${first}`),
    lose: () => sql('DELETE FROM feeds'),
  };
  await actions[action]();
  server.close();
  if (action !== 'reconcile') await feeds.close();
}

main(...process.argv.slice(2));
