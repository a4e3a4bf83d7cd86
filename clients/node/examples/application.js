'use strict';

// An application: it saves a model, runs it, stops it, and forgets it.

const { Client, Refused } = require('../refreshd.js');

async function tell(what, command) {
  try {
    console.log(`${what}: ${(await command).outcome}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(`${what}: refused, ${error.counter}`);
  }
}

async function main() {
  const shop = new Client({ by: 'shop' });
  const feed = { input_url: 'https://example.com/größe.csv' };
  const daily = { rrule: 'every day at 6 AM', labels: { tenant: 't1' } };
  await tell('put', shop.put('tbl_1', feed, daily));
  await tell('put again', shop.put('tbl_1', feed, daily));
  await tell('run', shop.run('tbl_1'));
  await tell('disable', shop.disable('tbl_1', 'has not paid'));
  await tell('run it then', shop.run('tbl_1'));
  await tell('enable', shop.enable('tbl_1'));
  await tell('remove', shop.remove('tbl_1'));
  await tell('run it then', shop.run('tbl_1'));
  await tell('put nonsense', shop.put('tbl_1', feed, { rrule: 'every blue moon' }));
  await shop.close();
}

main();
