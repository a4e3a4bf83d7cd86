'use strict';

// What the pages of an application show: it saves models, lists and reads them, holds some, and accepts a doubted result.

const { setTimeout: pause } = require('node:timers/promises');
const { Client } = require('../refreshd.js');

const show = (...values) => console.log(JSON.stringify(values));

async function main() {
  const shop = new Client({ by: 'shop' });
  const until = async (uid, holds) => { // what a page shows that asks again and again
    for (;;) {
      const model = await shop.get(uid);
      if (holds(model)) return model;
      await pause(20);
    }
  };
  const guarded = { timeout: '1h', retries: ['1h'], guard: [{ rows: { min: 1 } }], on_suspect: 'hold' };
  const models = Array.from({ length: 30 }, (_, i) => ({
    uid: `tbl_${String(i).padStart(2, '0')}`, payload: { rows: i }, rrule: 'every day at 6 AM', policy: guarded, labels: { kind: 'feed', tenant: `t${i % 2}` },
  }));
  const saved = await shop.putMany([...models, { ...models[0], uid: 'tbl_99', timezone: 'Mars/Base' }]);
  show('saved', saved.filter(({ outcome }) => outcome === 'applied').length, saved[30].outcome, saved[30].field);
  show('saved again', (await shop.putMany(models)).filter(({ outcome }) => outcome === 'unchanged').length);
  show('tenant t0', ...await shop.list('tenant=t0'));
  show('next page', ...await shop.list('tenant=t1, kind=feed', { after: 'tbl_05', limit: 3 }));
  await shop.list('policy=nightly').catch((error) => error instanceof TypeError && show('no such list'));
  show('nobody', await shop.get('nobody'), ...await shop.history('nobody'));

  const fresh = await shop.get('tbl_07');
  show('new', fresh.uid, fresh.state, fresh.refreshWhy, fresh.refreshAt.getUTCHours(), fresh.lastSuccessAt, fresh.status, fresh.progress, fresh.labels.tenant);
  show('run', (await shop.run('tbl_07')).outcome);
  const done = await until('tbl_07', (model) => model.lastSuccessAt);
  show('refreshed', done.state, done.status, done.progress, done.failingSince, (await shop.history('tbl_07', 1))[0].metrics);

  await shop.run('tbl_20');
  const working = await until('tbl_20', (model) => model.status);
  show('working', working.state, working.status, ...await shop.list('status=running'));
  show('disable', (await shop.disable('tbl_20', 'has not paid')).outcome);
  const stopped = await shop.get('tbl_20');
  show('disabled', stopped.state, stopped.refreshAt, stopped.disabledReason, ...await shop.list('status=disabled'));

  show('hold', (await shop.hold('move', 'moves house', { selector: 'tenant=t1', for: '2h' })).outcome, (await shop.run('tbl_09')).outcome);
  const held = await until('tbl_09', (model) => model.state === 'parked');
  show('held', held.parkedBy, ...await shop.list('tenant=t1,status=parked'));
  show('release', (await shop.release('move')).outcome, (await until('tbl_09', (model) => model.lastSuccessAt)).state);

  await shop.run('tbl_13');
  const failing = await until('tbl_13', (model) => model.failingSince);
  const [last] = await shop.history('tbl_13');
  show('failing', failing.state, last.is, last.reason, await shop.list('status=failing,tenant=t1'), await shop.list('status=failing,tenant=t0'));

  await shop.run('tbl_00');
  const doubted = await until('tbl_00', (model) => model.parkedBy);
  show('doubted', doubted.state, doubted.parkedBy, (await shop.history('tbl_00'))[0].suspect);
  show('accept', (await shop.accept('tbl_00')).outcome, (await until('tbl_00', (model) => model.lastSuccessAt)).state);
  show('reject', (await shop.reject('tbl_00')).outcome); // nothing is doubted
  await shop.close();
}

main();
