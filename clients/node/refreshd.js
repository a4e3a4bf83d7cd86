'use strict';

/**
 * refreshd for Node: workers that refresh models, and applications that save them.
 *
 *     const { Worker, Client } = require('refreshd');
 *
 *     new Worker(async (attempt) => {                        // a worker
 *       await download(attempt.payload.input_url, { signal: attempt.signal });
 *     }).run();
 *
 *     const shop = new Client({ by: 'shop' });               // an application
 *     await shop.put('tbl_1', { input_url: 'https://example.com/feed.csv' }, { rrule: 'every day at 6 AM' });
 *     await shop.run('tbl_1');
 *
 * Both find Redis in REDIS_URL (redis://127.0.0.1:6379 if it is not set) and the queue in REFRESHD_QUEUE (bigtables). Needs Node 18 and
 * node-redis 4. What goes over the wire is told by docs/wire.md of refreshd.
 */

const { randomUUID } = require('node:crypto');
const os = require('node:os');
const { setTimeout: pause } = require('node:timers/promises');
const redis = require('redis');

/** Thrown by a handler: the refresh has failed. Any other error is a failure too, of the error type that its class is called. */
class Failure extends Error {
  /**
   * @param {string} reason
   * @param {{errorType?: string, retryable?: boolean, retryAfter?: number|string|Date, userFriendlyReason?: string}} [more]
   */
  constructor(reason, { errorType, retryable, retryAfter, userFriendlyReason } = {}) {
    super(reason);
    this.name = 'Failure';
    this.fields = { reason, error_type: errorType, retryable, retry_after: retryAfter, user_friendly_reason: userFriendlyReason };
  }
}

/** Thrown by a handler: it cannot be done now. Tried again after so many seconds; not counted as an attempt. */
class Postpone extends Error {
  /** @param {number} seconds */
  constructor(seconds) {
    super(`postponed for ${seconds} s`);
    this.name = 'Postpone';
    this.seconds = seconds;
  }
}

/** The reason of attempt.signal: the work no longer counts, because of 'fence_lost', 'deadline' or 'shutdown'. Let it pass. */
class Stopped extends Error {
  constructor(why) {
    super(why);
    this.name = 'Stopped';
    this.why = why;
  }
}

/** One attempt to refresh a model. */
class Attempt {
  #controller = new AbortController();
  #told = 0;
  #status = null;

  constructor(entry, list, names, tell) {
    this.uid = entry[names.model];
    this.attemptUid = entry[names.attempt];
    for (const uid of [this.uid, this.attemptUid]) {
      if (typeof uid !== 'string' || uid === '') throw new Error('an entry without uids');
    }
    this.attemptNo = entry.attempt_no ?? 0;
    /** @type {Date|null} it moves when the work begins; null: there is none */
    this.deadline = time(entry.deadline_at);
    this.plannedAt = time(entry.planned_at);
    const { [names.model]: _1, [names.attempt]: _2, attempt_no, deadline_at, planned_at, reply_to, traceparent, ...rest } = entry;
    /** @type {string|undefined} of W3C Trace Context; undefined: the attempt is not traced */
    this.traceparent = traceparent;
    /** @type {Record<string, any>} */
    this.payload = names.nested ? entry.payload ?? {} : rest;
    this.changed = true;
    this.answer = null;
    Object.assign(this, { begun: false, takenAt: Date.now() });
    this.modelKey = `${list.slice(0, -'-input'.length)}:model:${this.uid}`;
    this.replyTo = reply_to ?? `${list.slice(0, -'-input'.length)}-output`;
    this.tell = tell;
  }

  /** Ends when the work no longer counts: hand it to fetch and the like. @returns {AbortSignal} */
  get signal() { return this.#controller.signal; }

  /** Why the work no longer counts; undefined: it does. @returns {string|undefined} */
  get why() { return this.signal.reason?.why; }

  /** Throws Stopped once the work no longer counts. Call it between two steps of the work. */
  check() { this.signal.throwIfAborted(); }

  /** Sleeps, and throws Stopped as soon as the work no longer counts. @param {number} seconds */
  async sleep(seconds) {
    await pause(seconds * 1000, undefined, { signal: this.signal }).catch(() => {});
    this.check();
  }

  /**
   * Tells the owner how far the work is. Call it as often as you like: four a second are told, and the last.
   * @param {string} text
   * @param {number} [progress] 0 to 100
   */
  status(text, progress) {
    this.#status = { status: String(text), progress };
    if (Date.now() - this.#told >= 250) this.flushStatus();
  }

  /** Makes the success that follows say that the refresh found nothing new. */
  unchanged() { this.changed = false; }

  flushStatus() {
    if (this.#status === null || this.signal.aborted) return;
    this.tell(this, 'user_friendly_status', this.#status);
    this.#status = null;
    this.#told = Date.now();
  }

  /** Whether it no longer counts, as Redis told it last. A deadline that passes before `started` is applied moves, but not for ever. */
  get over() {
    if (this.why === 'fence_lost' || this.why === 'deadline') return true;
    return this.deadline && Date.now() >= this.deadline && (this.begun || Date.now() >= this.takenAt + 60_000);
  }

  stop(why) { this.#controller.abort(new Stopped(why)); }
}

/**
 * Takes attempts and calls refresh(attempt) for each, up to concurrency of them at a time. That its promise resolves is success; Failure,
 * Postpone or any other error says otherwise. grace is how many seconds the work in hand may go on after SIGTERM or SIGINT; then it is stopped
 * and handed back. fenceEvery is how often, in seconds, it is compared with Redis. redis is a URL or a client of node-redis.
 */
class Worker {
  #stopping = new AbortController();
  #gone = new AbortController();
  #inHand = new Set();
  #changed = () => {};

  /**
   * @param {(attempt: Attempt) => any} refresh
   * @param {{redis?: any, queue?: string, concurrency?: number, name?: string, fenceEvery?: number, grace?: number}} [options]
   */
  constructor(refresh, { redis: where, queue, concurrency = 4, name = os.hostname(), fenceEvery = 1, grace = 10 } = {}) {
    Object.assign(this, { refresh, concurrency, name, fenceEvery, grace, queue: queue ?? process.env.REFRESHD_QUEUE ?? 'bigtables' });
    this.client = connect(where);
  }

  /** Takes no more attempts; run() returns when those in hand are finished or handed back. */
  stop() { this.#stopping.abort(); }

  /** Works until stop() is called, SIGTERM or SIGINT. */
  async run() {
    const stop = () => this.stop();
    process.on('SIGTERM', stop).on('SIGINT', stop);
    const taker = this.client.duplicate(); // BLPOP holds up everything else on its connection
    taker.on('error', (error) => this.log('redis', error));
    this.#stopping.signal.addEventListener('abort', () => { // a client without a connection waits for one, maybe for ever
      for (const client of this.#inHand.size > 0 ? [taker] : [taker, this.client]) {
        if (!client.isReady) client.disconnect().catch(() => {});
      }
    }, { once: true });
    try {
      await Promise.all([this.client, taker].map((client) => client.isOpen || client.connect()));
      const names = await this.#patiently(() => readNames(this.client, this.queue));
      if (names === null) return;
      const watching = this.#watch();
      await this.#takeAll(taker, names);
      await this.#finish();
      this.#gone.abort();
      await watching;
    } finally {
      process.off('SIGTERM', stop).off('SIGINT', stop);
      await Promise.allSettled([this.client.disconnect(), taker.disconnect()]);
    }
  }

  log(what, error) { console.error(`refreshd: ${what}: ${error.message}`); }

  async #takeAll(taker, names) {
    const inputs = names.parts.map((part) => `${part}-input`);
    while (!this.#stopping.signal.aborted) {
      if (this.#inHand.size >= this.concurrency) {
        await this.#until(() => this.#inHand.size < this.concurrency, 1);
        continue;
      }
      inputs.push(inputs.shift()); // so that no part of the queue comes last for ever
      let taken = null;
      try {
        taken = await taker.blPop(inputs, 1);
      } catch (error) {
        this.log('taking attempts', error);
        await pause(200);
      }
      try {
        if (taken) this.#begin(new Attempt(JSON.parse(taken.element), taken.key, names, (...m) => this.#tell(...m)));
      } catch (error) {
        this.log('dropped an entry that cannot be read', error); // without uids nobody can be told about it
      }
    }
  }

  #begin(attempt) {
    this.#inHand.add(attempt);
    this.#work(attempt).catch((error) => this.log(`answering for ${attempt.uid}`, error)).finally(() => {
      this.#inHand.delete(attempt);
      this.#changed();
    });
  }

  async #work(attempt) {
    if (this.#stopping.signal.aborted) {
      attempt.stop('shutdown');
    } else { // say that the work begins, and ask whether it counts: it may have been superseded while it stood in line
      const said = await this.#patiently(() => Promise.all([
        this.client.rPush(attempt.replyTo, message(attempt, 'started', { worker: this.name })),
        this.client.hGet(attempt.modelKey, 'attempt_uid'),
      ]), attempt, 'started');
      if (said?.[1] !== attempt.attemptUid) attempt.stop('fence_lost');
    }
    const [type, fields] = await this.#outcome(attempt);
    await this.#answer(attempt, type, fields);
  }

  /** The type of the message that tells how an attempt ended, and its fields; null: nothing is to be told, as it would be stale. */
  async #outcome(attempt) {
    let type = 'success';
    let fields = {};
    try {
      attempt.check();
      await this.refresh(attempt);
      if (!attempt.changed) fields.changed = false;
    } catch (error) {
      if (error instanceof Postpone) [type, fields] = ['postponed', { retry_after: error.seconds }];
      else if (error instanceof Failure) [type, fields] = ['failure', error.fields];
      else [type, fields] = ['failure', { reason: String(error?.message || error), error_type: error?.name }];
    }
    if (attempt.why === 'fence_lost' || attempt.why === 'deadline') return [null, {}];
    if (attempt.why === 'shutdown' && type !== 'success') return ['interrupted', {}]; // failed or only stopped: nobody can tell
    return [type, fields];
  }

  /** Pushes a result, once: it may be handed back meanwhile. After an error it is pushed again, which is safe: the second one is a duplicate. */
  #answer(attempt, type, fields) {
    attempt.answer ??= (async () => {
      if (type === null) return;
      attempt.flushStatus();
      await this.#patiently(() => this.client.rPush(attempt.replyTo, message(attempt, type, fields)), attempt, type);
    })();
    return attempt.answer;
  }

  /** Pushes a message that may be lost. */
  #tell(attempt, type, fields) {
    this.client.rPush(attempt.replyTo, message(attempt, type, fields)).catch((error) => this.log(`${type} of ${attempt.uid}`, error));
  }

  /**
   * Calls until Redis answers, whatever error it answers meanwhile. Null: Redis will never take it, the attempt no longer counts, or the worker
   * has to end. Without an attempt the first of these is thrown.
   */
  async #patiently(call, attempt, type) {
    const { signal } = attempt ? this.#gone : this.#stopping;
    for (let wait = 50; ; wait = Math.min(2 * wait, 5000)) {
      try {
        return await call();
      } catch (error) {
        const never = /^(NOPERM|WRONGTYPE)/.test(error.message);
        if (!attempt && (never || /^(NOAUTH|WRONGPASS)/.test(error.message))) throw error;
        if (never || attempt?.over || signal.aborted) {
          if (attempt) this.log(`attempt ${attempt.attemptUid} of ${attempt.uid}: ${type} may not have reached redis`, error);
          return null;
        }
        this.log('redis', error);
        await pause(wait * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
      }
    }
  }

  /** Compares the attempts in hand with Redis, all of them with one round trip, and stops those that no longer count. */
  async #watch() {
    const { signal } = this.#gone;
    const gone = new Promise((end) => signal.addEventListener('abort', () => end(), { once: true }));
    while (await pause(this.fenceEvery * 1000, true, { signal }).catch(() => false)) {
      const ask = (attempt) => Promise.all(
        ['attempt_uid', 'deadline_at', 'processing_at'].map((field) => this.client.hGet(attempt.modelKey, field)));
      const attempts = [...this.#inHand];
      const told = Promise.all(attempts.map(ask)).catch((error) => this.log('comparing the attempts in hand', error));
      const found = await Promise.race([told, gone]);
      attempts.forEach((attempt, i) => found && this.#judge(attempt, ...found[i]));
    }
  }

  #judge(attempt, current, deadline, begun) {
    attempt.deadline = time(deadline);
    attempt.begun = Boolean(begun);
    if (current !== attempt.attemptUid) attempt.stop('fence_lost');
    else if (begun && attempt.deadline && Date.now() >= attempt.deadline) attempt.stop('deadline'); // before `started` is applied it moves yet
    else attempt.flushStatus();
  }

  /** Waits for the work in hand; what is not done within the grace is stopped, and handed back if it does not stop. */
  async #finish() {
    const idle = () => this.#inHand.size === 0;
    await this.#until(idle, this.grace);
    for (const attempt of this.#inHand) attempt.stop('shutdown');
    await this.#until(idle, 2);
    const left = [...this.#inHand].map((attempt) => this.#answer(attempt, attempt.why === 'shutdown' ? 'interrupted' : null, {}));
    await Promise.race([Promise.allSettled(left), left.length && pause(5000, undefined, { signal: this.#gone.signal })]);
  }

  async #until(holds, seconds) {
    const end = Date.now() + seconds * 1000;
    while (!holds() && Date.now() < end) {
      const timer = new AbortController();
      await Promise.race([
        new Promise((changed) => { this.#changed = changed; }),
        pause(end - Date.now(), undefined, { signal: timer.signal }).catch(() => {}),
      ]);
      timer.abort();
    }
  }
}

/** A command was refused. counter tells the kind: busy, stopped, unknown_model, malformed, no_uid or unknown_type. */
class Refused extends Error {
  constructor(reply) {
    super(reply.reason ?? reply.outcome);
    this.name = 'Refused';
    this.reply = reply;
    this.counter = reply.counter;
  }
}

/** No poller has answered in time. The command may be carried out yet; sent again with this commandId it is done once. */
class NoReply extends Error {
  constructor(commandId) {
    super(`no reply to the command ${commandId}`);
    this.name = 'NoReply';
    this.commandId = commandId;
  }
}

/**
 * Says what an application wants. Each command waits up to timeout seconds for its reply, an object as docs/wire.md has it; outcome is
 * 'applied', 'unchanged' or 'duplicate'. With timeout 0 it is only sent. by is who wants it, for the journal.
 */
class Client {
  #names = null;

  /** @param {{redis?: any, queue?: string, by?: string, timeout?: number}} [options] */
  constructor({ redis: where, queue, by, timeout = 10 } = {}) {
    Object.assign(this, { by, timeout, queue: queue ?? process.env.REFRESHD_QUEUE ?? 'bigtables' });
    this.client = connect(where);
  }

  /**
   * Saves a model.
   * @param {string} uid
   * @param {Record<string, any>} [payload]
   * @param {{rrule?: string, timezone?: string, dtstart?: string, refresh?: 'now'|'planned', policy?: any, labels?: Record<string, string>,
   *   commandId?: string}} [definition]
   */
  put(uid, payload, definition = {}) { return this.#send('put', uid, { payload, ...definition }); }

  /** Refreshes a model now. Refused (busy) while it is being refreshed, unless force is true. */
  run(uid, { force, commandId } = {}) { return this.#send('run', uid, { force, commandId }); }

  enable(uid, { commandId } = {}) { return this.#send('enable', uid, { commandId }); }

  disable(uid, reason, { commandId } = {}) { return this.#send('disable', uid, { reason, commandId }); }

  remove(uid, { commandId } = {}) { return this.#send('remove', uid, { commandId }); }

  /** Closes the connections. */
  async close() { if (this.client.isOpen) await this.client.disconnect(); }

  async #send(type, uid, { commandId = randomUUID(), ...fields }) {
    if (!this.client.isOpen) await this.client.connect();
    this.#names ??= await readNames(this.client, this.queue);
    const { parts } = this.#names;
    const home = parts[crc32(uid) % parts.length];
    const replyTo = this.timeout > 0 ? `${home}:reply:${commandId}` : undefined;
    const command = JSON.stringify({ ...fields, type, uid, command_id: commandId, by: this.by, reply_to: replyTo });
    await this.client.rPush(`${home}-control`, command).catch((error) => { // once more: with the same commandId it is carried out once
      if (error instanceof redis.ErrorReply) throw error;
      return this.client.rPush(`${home}-control`, command);
    });
    return replyTo && this.#await(replyTo, commandId);
  }

  async #await(replyTo, commandId) {
    const end = Date.now() + this.timeout * 1000;
    const waiter = this.client.duplicate();
    waiter.on('error', () => {}); // the command fails too
    await waiter.connect();
    try {
      while (Date.now() < end) {
        const answer = await waiter.blPop(replyTo, 1);
        if (!answer) continue;
        const reply = JSON.parse(answer.element);
        if (reply.outcome === 'refused') throw new Refused(reply);
        return reply;
      }
      throw new NoReply(commandId);
    } finally {
      await waiter.disconnect();
    }
  }
}

/** What a queue is divided into, and how its messages call things. */
async function readNames(client, queue) {
  const bare = queue.replace(/^\{|\}$/g, '');
  const [parts, model, attempt, payload] = await Promise.all(
    ['parts', 'model_name', 'attempt_name', 'payload'].map((field) => client.hGet(`{${bare}}:settings`, field)));
  return {
    parts: parts > 1 ? Array.from({ length: Number(parts) }, (_, i) => `{${bare}:${i}}`) : [queue],
    model: model ?? 'big_table_uid', attempt: attempt ?? 'refresh_attempt_uid', nested: payload === 'nested',
  };
}

/** A text is cut where a poller would cut it: so no message is too large for a Redis that is short of memory. */
function message(attempt, type, fields) {
  const cut = (name, value) => (typeof value === 'string' ? value.slice(0, 2000) : value);
  return JSON.stringify({ type, uid: attempt.uid, refresh_attempt_uid: attempt.attemptUid, ...fields }, cut);
}

function connect(where) {
  if (where && typeof where !== 'string') return where;
  const client = redis.createClient({ url: where ?? process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' });
  client.on('error', (error) => console.error(`refreshd: redis: ${error.message}`));
  return client;
}

function time(text) { return text ? new Date(text) : null; }

/** CRC-32 (IEEE 802.3), which zlib of Node has since 22 only. */
function crc32(text) {
  let sum = ~0;
  for (const byte of Buffer.from(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

// >>> scripts of refreshd, written by: go test ./scripts -run TestTheClients -update
const TAKE_DIGEST = 'a4c1cd36c70c6c8966c0342aec062366316fba1a';
const TAKE = String.raw`
local function clock(argument)
  if argument ~= '' then
    return argument
  end
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local input, taken, workers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, new = clock(ARGV[1]), ARGV[2], ARGV[3]
local most, known, pool = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local wrong, unfit = wrong_type({'list',
  'list',
  'zset',
  'hash'})
if unfit[3] or (unfit[1] or unfit[2]) and most > 0 then
  return wrong
end
if new == '' and not redis.call('ZSCORE', workers, owner) then
  return {now, 0, {}, ''}
end
redis.call('ZADD', workers, now, owner)
local entries, order = {}, not unfit[4] and redis.call('HGET', orders, pool) or ''
if most == 0 then
  return {now, 1, entries, order}
end
if redis.call('LLEN', taken) > known then
  return {now, 2, redis.call('LRANGE', taken, 0, -1), order}
end
if order ~= '' then
  return {now, 1, entries, order}
end
for _ = 1, math.min(most, redis.call('LLEN', input)) do
  entries[#entries + 1] = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')
end
return {now, 1, entries, order}
`;
const ANSWER_DIGEST = 'f9d19687854ff6b49b48f4439f0a55026bbdbac3';
const ANSWER = String.raw`
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local wrong = wrong_type({'list',
  'list'})
if wrong then
  return wrong
end
local output, taken = KEYS[1], KEYS[2]

local codes = {}
for i = 1, #ARGV, 3 do
  local ends, entry, message = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if ends == '' or redis.call('LREM', taken, 1, entry) == 1 then
    code = 1
    if message ~= '' then
      redis.call('RPUSH', output, message)
    end
  end
  codes[#codes + 1] = code
end
return codes
`;
// <<< scripts

module.exports = { Attempt, Client, Failure, NoReply, Postpone, Refused, Stopped, Worker };
