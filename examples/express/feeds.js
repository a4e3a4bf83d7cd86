'use strict';

// A feed is a row, and a model of refreshd that follows the row after each commit.

const { Pool } = require('pg');
const { Client } = require('refreshd');

const pool = new Pool();
const refreshd = new Client({ by: 'express', timeout: 2 });

const uidOf = (id) => `feed_${id}`;
const definition = ({ id, url }) => ({ uid: uidOf(id), payload: { input_url: url }, rrule: 'every day at 6 AM', labels: { kind: 'feed' } });

/** Runs work(db), which returns the id of the row that it writes, in a transaction. The model follows after the commit. */
async function commit(work) {
  const db = await pool.connect();
  let id;
  try {
    await db.query('BEGIN');
    id = await work(db);
    await db.query('COMMIT');
  } catch (error) {
    await db.query('ROLLBACK').catch(() => {}); // the first error says more
    throw error;
  } finally {
    db.release();
  }
  await sync(id).catch((error) => console.error(`${uidOf(id)}: the row is committed, its model is not saved yet: ${error.message}`));
  return id;
}

/** Saves or removes the model of a row. What fails here, reconcile.js does later. */
async function sync(id) {
  const { rows: [feed] } = await pool.query('SELECT * FROM feeds WHERE id = $1', [id]); // as it was committed last, perhaps by another request
  if (!feed) return refreshd.remove(uidOf(id));
  const { uid, payload, ...more } = definition(feed);
  return refreshd.put(uid, payload, { ...more, refresh: 'now' });
}

const add = (db, { name, url }) => db.query('INSERT INTO feeds (name, url) VALUES ($1, $2) RETURNING id', [name, url]).then(({ rows }) => rows[0].id);
const remove = (db, id) => db.query('DELETE FROM feeds WHERE id = $1', [id]).then(() => id);

/** The feeds, each with what refreshd knows of it now; null: nothing yet. */
async function all() {
  const { rows } = await pool.query('SELECT * FROM feeds ORDER BY name');
  return Promise.all(rows.map(async (feed) => ({ ...feed, model: await refreshd.get(uidOf(feed.id)) })));
}

/** Saves the models of all feeds, and removes those without a feed. Run it every few minutes by cron. */
async function reconcile() {
  const known = []; // read before the rows, so that the model of a new row stays
  for (let page; (page = await refreshd.list('kind=feed', { after: known.at(-1) })).length > 0;) known.push(...page);
  const { rows } = await pool.query('SELECT * FROM feeds');
  const replies = await refreshd.putMany(rows.map(definition));
  const kept = new Set(rows.map(({ id }) => uidOf(id)));
  for (const uid of known) if (!kept.has(uid)) await refreshd.remove(uid);
  return replies.filter(({ outcome }) => outcome === 'refused');
}

const close = () => Promise.all([pool.end(), refreshd.close()]);

module.exports = { add, all, close, commit, reconcile, refreshd, remove };
