'use strict';

// Tests of `testing`, and examples of its use: node --test clients/node/test

const assert = require('node:assert');
const { test } = require('node:test');
const { Attempt, Failure, Postpone, Stopped, testing } = require('../refreshd.js');

/** What attempts have told, without their uids. */
async function told(refresh, ...attempts) {
  const all = await testing.run(refresh, attempts.length > 0 ? attempts : [{}]);
  return all.map((messages) => messages.map(({ uid, refresh_attempt_uid, ...rest }) => rest));
}

const failing = (error) => () => { throw error; };

test('a success comes behind each status with what the handler said', async () => {
  const refresh = async (attempt) => {
    for (const part of [1, 2]) attempt.status(`part ${part}`, 50 * part);
    attempt.metric('rows', 3);
    attempt.unchanged();
    attempt.log('2 parts');
  };
  assert.deepStrictEqual(await told(refresh), [[
    { type: 'user_friendly_status', status: 'part 1', progress: 50 },
    { type: 'user_friendly_status', status: 'part 2', progress: 100 },
    { type: 'success', metrics: { rows: 3 }, changed: false, log: '2 parts' },
  ]]);
});

test('messages name the model and its attempt', async () => {
  const [[message]] = await testing.run(() => {}, [testing.attempt({}, { uid: 'tbl_1' })]);
  assert.deepStrictEqual(message, { type: 'success', uid: 'tbl_1', refresh_attempt_uid: 'attempt' });
});

test('each attempt has its own payload', async () => {
  const urls = [];
  await testing.run((attempt) => { urls.push(attempt.payload.input_url); }, [{ input_url: 'a' }, { input_url: 'b' }]);
  assert.deepStrictEqual(urls, ['a', 'b']);
});

test('a failure has the fields of the handler', async () => {
  const failure = new Failure('gone', { errorType: 'http_404', retryable: false, userFriendlyReason: 'The feed is gone' });
  const want = { type: 'failure', reason: 'gone', error_type: 'http_404', retryable: false, user_friendly_reason: 'The feed is gone' };
  assert.deepStrictEqual(await told(failing(failure)), [[want]]);
});

test('what is thrown without words is told with its class', async () => {
  for (const [error, reason] of [[new Error('404'), 'Error: 404'], [new TypeError(), 'TypeError'], [new TypeError('expected a text'), 'expected a text'],
    ['a text', 'a text'], [{ code: 5 }, '{ code: 5 }'], [undefined, 'undefined'], [new Failure(new RangeError('7')), 'RangeError: 7']]) {
    const [[message]] = await told(failing(error));
    assert.strictEqual(message.reason, reason);
  }
});

test('a postponed attempt', async () => {
  assert.deepStrictEqual(await told(failing(new Postpone(60))), [[{ type: 'postponed', retry_after: 60 }]]);
});

test('what cannot be told is a failure of its class', async () => {
  const mute = Object.defineProperty(new RangeError(), 'message', { get() { throw new Error('no text'); } });
  for (const [error, type] of [[new Postpone(5n), 'TypeError'], [new Failure('gone', { retryAfter: 5n }), 'TypeError'],
    [new Postpone(NaN), 'TypeError'], [mute, 'RangeError'],
    [Object.assign(new Error('gone'), { name: 5n }), undefined]]) {
    const [[message]] = await told(failing(error));
    assert.deepStrictEqual([message.type, message.error_type], ['failure', type]);
  }
});

test('a generator does no work and fails', async () => {
  for (const refresh of [function* work() { yield 1; }, async function* work() { yield 1; }]) {
    const [[message]] = await told(refresh);
    assert.deepStrictEqual([message.type, message.error_type], ['failure', 'TypeError']);
  }
});

test('what JSON would leave out or change is refused by its path', () => {
  for (const [payload, path, found] of [[{ rows: NaN }, 'payload.rows', 'NaN'], [{ a: [{ b: -Infinity }] }, 'payload.a[0].b', '-Infinity'],
    [{ at: new Date('never') }, 'payload.at', 'Invalid Date'], [{ a: undefined }, 'payload.a', 'undefined'], [[() => 1], 'payload[0]', '[Function (anonymous)]'],
    [{ n: 5n }, 'payload.n', '5n'], [{ feed: Promise.resolve(1) }, 'payload.feed', '[Promise]'], [{ all: new Map([[1, 2]]) }, 'payload.all', '[Map]']]) {
    assert.throws(() => testing.attempt(payload), { name: 'TypeError', message: `${path}: expected a value that JSON has, found ${found}` });
  }
  const at = new Date(0);
  const shared = Object.assign(Object.create(null), { n: 1 });
  assert.deepStrictEqual(testing.attempt({ at, a: null, b: [shared, shared], '': '', o: {} }).payload,
    { at: at.toISOString(), a: null, b: [{ n: 1 }, { n: 1 }], '': '', o: {} });
});

test('verdicts that no poller gives are refused', () => {
  for (const verdicts of ['hold', [], ['maybe'], [{ reason: 'no rows' }], [null]]) {
    assert.throws(() => testing.attempt({}, { verdicts }), /verdicts: expected/);
  }
});

test('sleep takes no time', async () => {
  const attempt = testing.attempt();
  await attempt.sleep(3600);
  await attempt.sleep(1);
  assert.strictEqual(attempt.slept, 3601);
});

test('an attempt has the fields of its entry', () => {
  const attempt = testing.attempt({ fence: 'of the payload' }, { attempt_no: 3, fence: 7, deadline_at: '2026-11-21T07:00:00.000Z', deaths: 2 });
  assert.deepStrictEqual([attempt.attemptNo, attempt.fence, attempt.deadline.getUTCHours(), attempt.deaths], [3, 7, 7, 2]);
  assert.deepStrictEqual(attempt.payload, { fence: 'of the payload' });
});

test('verdicts come in their order, and the last one again', async () => {
  const attempt = testing.attempt({}, { verdicts: ['publish', { verdict: 'hold', reason: 'no rows' }] });
  assert.deepStrictEqual([await attempt.ready({ rows: 3 }), await attempt.ready({ rows: 0 }), await attempt.ready({ rows: 0 })], [true, false, false]);
  assert.strictEqual(attempt.doubt, 'no rows');
  assert.deepStrictEqual(attempt.told.map(({ metrics }) => metrics), [{ rows: 3 }, { rows: 0 }, { rows: 0 }]);
});

test('what a guard doubts is not published', async () => {
  const [messages] = await testing.run((attempt) => attempt.ready({ rows: 0 }), [testing.attempt({}, { verdicts: ['hold'] })]);
  assert.strictEqual(messages.at(-1).published, false);
});

test('a stale verdict ends the work without a message', async () => {
  const [messages] = await testing.run((attempt) => attempt.ready(), [testing.attempt({}, { verdicts: ['stale'] })]);
  assert.deepStrictEqual(messages.map(({ type }) => type), ['ready']);
});

test('an attempt that is stopped in the middle of its work', async () => {
  for (const [why, want] of [['deadline', []], ['shutdown', [{ type: 'interrupted' }]]]) {
    const refresh = async (attempt) => {
      testing.stop(attempt, why);
      attempt.status('never told');
      attempt.check();
      assert.fail('the work went on');
    };
    assert.deepStrictEqual(await told(refresh), [want]);
  }
});

test('a success counts also at a shutdown', async () => {
  assert.deepStrictEqual(await told((attempt) => testing.stop(attempt, 'shutdown')), [[{ type: 'success' }]]);
});

test('after a stop the signal has ended, and check and sleep throw Stopped', async () => {
  const attempt = testing.attempt();
  testing.stop(attempt, 'fence_lost');
  assert.ok(attempt.signal.aborted);
  assert.throws(() => attempt.check(), Stopped);
  await assert.rejects(attempt.sleep(1), Stopped);
});

test('a wrong reason is refused', () => {
  assert.throws(() => testing.stop(testing.attempt(), 'late'), /expected one of .*deadline.*, found late/);
});

test('an attempt without a worker says how to make one', () => {
  const attempt = new Attempt('{"uid":"tbl_1","a":"a1"}', 'q-input', { model: 'uid', attempt: 'a' });
  assert.throws(() => attempt.status('half'), /testing\.attempt/);
});
