'use strict';

const feeds = require('./feeds.js');

feeds.reconcile().then((refused) => {
  for (const { uid, reason } of refused) console.error(`${uid}: ${reason}`);
  process.exitCode = refused.length > 0 ? 1 : 0;
}).finally(feeds.close);
