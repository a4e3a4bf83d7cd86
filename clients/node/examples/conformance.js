'use strict';

// The worker that `refreshd conformance` asks for: its payload says how the attempt ends. See clients/README.md of refreshd.
//
//     refreshd conformance -- node examples/conformance.js

const { createHash } = require('node:crypto');
const { Worker, Failure, Postpone } = require('../refreshd.js');

async function refresh(attempt) {
  const todo = attempt.payload;
  if (todo.status) attempt.status(todo.status, todo.progress);
  await attempt.sleep((todo.after_ms ?? 0) / 1000);
  if (todo.do === 'fail') {
    throw new Failure(todo.reason, { errorType: todo.error_type, retryable: todo.retryable, userFriendlyReason: todo.user_friendly_reason });
  }
  if (todo.do === 'postpone') throw new Postpone(todo.seconds);
  if (todo.do === 'hang') await new Promise((end) => { setTimeout(end, 3_600_000); });
  if (todo.do === 'digest') attempt.status(createHash('sha256').update(todo.text).digest('hex'));
}

new Worker(refresh, { concurrency: Number(process.env.REFRESHD_CONCURRENCY ?? 4), fenceEvery: 0.1, grace: 0.3, signsEvery: 1 }).run();
