'use strict';

/**
 * refreshd for Node: workers that refresh models, and applications that save them. README.md beside it has examples, docs/wire.md the wire format, and
 * refreshd.d.ts the types.
 */

const { randomBytes, randomUUID } = require('node:crypto');
const { EventEmitter, once } = require('node:events');
const os = require('node:os');
const { setTimeout: pause } = require('node:timers/promises');
const { inspect, types } = require('node:util');

const redis = nodeRedis();

function nodeRedis() {
  let found = 'none';
  try {
    found = require('redis/package.json').version;
    if (/^[456]\./.test(found)) return require('redis');
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND' || found !== 'none') throw error;
  }
  throw new Error(`refreshd needs node-redis 4, 5 or 6 (npm install redis), found ${found}`);
}

/** Thrown by a handler: the refresh has failed. Any other error is a failure too, of the error type that its class is called. */
class Failure extends Error {
  constructor(reason, { errorType, retryable, retryAfter, userFriendlyReason } = {}) {
    super(reason);
    this.fields = { reason: reason instanceof Error ? reasonOf(reason) : reason, error_type: errorType, retryable, retry_after: retryAfter, user_friendly_reason: userFriendlyReason };
  }
}

/** Thrown by a handler: it cannot be done now. Tried again after so many seconds; not counted as an attempt. */
class Postpone extends Error {
  constructor(seconds) {
    super(`postponed for ${seconds} s`);
    this.seconds = seconds;
  }
}

/** The reason of attempt.signal: the work no longer counts. why: 'fence_lost', 'requeued' (others have it), 'deadline' or 'shutdown'. Let it pass. */
class Stopped extends Error {
  constructor(why) {
    super(why);
    this.why = why;
  }
}

/** One attempt to refresh a model. */
class Attempt {
  #controller = new AbortController();
  #sentAt = Date.now() - 250; // so that the first status is sent immediately
  #status = null;
  #lives = false; // the handler has shown life since the last message
  #metrics = {};
  #log;

  constructor(raw, list, names, worker = { send: noWorker, ask: noWorker }) {
    const entry = JSON.parse(raw);
    this.uid = entry[names.model];
    this.attemptUid = entry[names.attempt];
    for (const uid of [this.uid, this.attemptUid]) {
      if (typeof uid !== 'string' || uid === '') throw new Error('an entry without uids');
    }
    this.attemptNo = entry.attempt_no ?? 0;
    this.deadline = time(entry.deadline_at);
    this.plannedAt = time(entry.planned_at);
    const { [names.model]: _1, [names.attempt]: _2, attempt_no, deadline_at, planned_at, reply_to, traceparent, ...rest } = entry;
    this.traceparent = traceparent;
    const { fence, due_at, for: purpose, ...others } = rest;
    const fenced = Number.isSafeInteger(fence) && typeof due_at === 'string' && typeof purpose === 'string'; // or they are of an older payload
    this.fence = fenced ? fence : null;
    this.dueAt = fenced ? time(due_at) : null;
    this.purpose = fenced ? purpose : null;
    this.payload = names.nested ? entry.payload ?? {} : fenced ? others : rest;
    const { deaths } = entry;
    const counted = Number.isSafeInteger(deaths) && deaths > 0 && (fenced || attempt_no === undefined); // or it is of an older payload
    this.deaths = counted ? deaths : 0;
    if (counted && !names.nested) delete this.payload.deaths;
    this.changed = true;
    this.logUrl = undefined;
    this.verdict = null;
    this.doubt = null;
    Object.assign(this, { answer: null, begun: false, takenAt: Date.now() });
    /** @type {Place|null} where its entry is until it is answered; null: nowhere, it was popped */
    this.place = null;
    this.queue = list.slice(0, -'-input'.length);
    this.modelKey = `${this.queue}:model:${this.uid}`;
    this.replyTo = reply_to ?? `${this.queue}-output`;
    this.worker = worker;
  }

  /** Ends when the work no longer counts: hand it to fetch and the like. */
  get signal() { return this.#controller.signal; }

  /** Why the work no longer counts; undefined: it does. */
  get why() { return this.signal.reason?.why; }

  /** Throws Stopped once the work no longer counts. Call it between two steps of the work. It is a sign of life, as alive() is. */
  check() {
    this.signal.throwIfAborted();
    this.alive();
  }

  /** Sleeps, and throws Stopped as soon as the work no longer counts. It gives signs of life. */
  async sleep(seconds) {
    const end = Date.now() + seconds * 1000;
    for (let left; (left = end - Date.now()) > 0; this.check()) {
      await pause(Math.min(left, (this.worker.signsEvery ?? seconds) * 1000), undefined, { signal: this.signal }).catch(() => {});
    }
    this.check();
  }

  /** Says that the work gets on, at most once in signsEvery seconds. Call it where something is done, not by a timer: else work that hangs looks alive. */
  alive() {
    this.#lives = this.worker.signsEvery > 0;
    this.flush();
  }

  /** Shows the owner the progress of the work; progress is 0 to 100. Call it as often as you like: it sends four a second, and the last. */
  status(text, progress) {
    this.#status = { status: String(text), progress };
    this.flush();
  }

  /** Makes the success that follows say that the refresh found nothing new. */
  unchanged() { this.changed = false; }

  /** Gives the success a number, such as its rows, by which a policy may doubt it: at most 16, with names of 1 to 40 small letters, digits or _. */
  metric(name, number) { if (Number.isFinite(number)) this.#metrics[name] = number; }

  /**
   * Asks whether you may publish a result with these numbers and those of metric(). If not, a guard of the policy doubts it: return then. verdict is
   * 'hold' or 'fail', doubt the reason. Throws Stopped, and Failure if no verdict comes within so many seconds.
   */
  async ready(metrics = {}, timeout = 60) {
    for (const [name, number] of Object.entries(metrics)) this.metric(name, number);
    const said = await this.worker.ask(this, timeout);
    Object.assign(this, { verdict: said.verdict, doubt: said.reason ?? null });
    if (this.verdict === 'stale') this.stop('fence_lost');
    this.check();
    return this.verdict === 'publish';
  }

  /** Hands over the output of the attempt: the last 64 KiB of the last one are kept. Mind secrets: not all of them are masked. */
  log(text) {
    const bytes = Buffer.from(String(text));
    let from = Math.max(0, bytes.length - 65_536);
    while (from > 0 && (bytes[from] & 0xc0) === 0x80) from++; // within a character
    this.#log = bytes.toString('utf8', from);
  }

  get metrics() { return Object.keys(this.#metrics).length > 0 ? this.#metrics : undefined; }

  /** What every message that ends the attempt has beside its own fields. */
  get ending() { return { log: this.#log || undefined, log_url: this.logUrl && String(this.logUrl) }; }

  /** Sends the status, or a message without one as a sign of life; sends nothing if it has sent something a moment ago. */
  flush(last = false) {
    if (this.answer) return; // it would be stale
    const since = Date.now() - this.#sentAt;
    if (this.#status ? !last && since < (this.worker.statusEvery ?? 250) : last || !this.#lives || since < this.worker.signsEvery * 1000) return;
    const status = this.#status ?? {};
    [this.#status, this.#lives, this.#sentAt] = [null, false, Date.now()];
    if (!this.signal.aborted) this.worker.send(this, 'user_friendly_status', status);
  }

  /**
   * Whether all its messages are stale, as Redis said last. What was done in time counts however late: an outage is nobody's timeout. Where nobody lets it
   * begin it is over a minute after its deadline was heard of.
   */
  get over() {
    if (UNHEARD.includes(this.why)) return true;
    return this.deadline && Date.now() >= this.deadline && !this.begun && Date.now() >= this.takenAt + 60_000;
  }

  stop(why) { this.#controller.abort(new Stopped(why)); }
}

/** Reasons to send nothing about an attempt: the message would be stale. */
const UNHEARD = ['fence_lost', 'requeued', 'deadline'];

function print(text) { console.error(`${new Date().toISOString()} refreshd: ${text}`); }

function noWorker() { throw new Error('no worker has this attempt: in a test make it by testing.attempt(), which needs no Redis'); }

/**
 * The entries that the worker has taken from one part of the queue. They are in a list of their own in Redis until they are answered. When the worker gives no heartbeat
 * for longer than its lease, a dispatcher requeues that list, and forgets the name of the worker.
 *
 * @typedef {{entry: string, owner: string, output: string}} Place an entry, the owner of its list, and the list for its answer
 */
class Taken {
  #entries = []; // each from its arrival until Redis has its answer; bytes as latin1, as an entry may be no text
  #settled = []; // places of entries that need no message, and that Redis has not removed yet
  #doubt = false; // a reply was lost: more entries may be there

  constructor(client, part, pool) {
    Object.assign(this, { client, part, pool, owner: pool, input: `${part}-input` });
    Object.assign(this, { known: false, beats: false }); // known: Redis has heard of the owner; beats: a heartbeat is under way
  }

  /**
   * Takes up to so many entries; with 0 it is a heartbeat only. An owner that was forgotten never comes back, so that nothing under way about it can be
   * taken for news of the next one. order: an order of an operator to the worker.
   */
  async take(most) {
    const { client, part, owner } = this;
    const known = this.#doubt ? -1 : this.#entries.length;
    const args = ['', owner, this.known ? '' : '1', String(most), String(known), this.pool];
    this.#doubt ||= most > 0; // until there is a reply
    const [, follows, found, order] = await runScript(client, TAKE_DIGEST, TAKE,
      [this.input, `${part}:taken:${owner}`, `${part}:workers`, `${part}:orders`], args);
    if (owner !== this.owner) return { entries: [], order: '' };
    if (follows === 0) {
      Object.assign(this, { owner: `${this.pool}~${letters()}`, known: false });
      [this.#entries, this.#settled, this.#doubt] = [[], [], false];
      return { entries: [], order: '', forgotten: owner };
    }
    this.known = true;
    if (most > 0) this.#doubt = false;
    const held = follows === 2 ? [...this.#entries] : []; // the reply repeats these
    const isNew = (entry) => !held.includes(entry) || !held.splice(held.indexOf(entry), 1);
    const entries = found.map((entry) => entry.toString('latin1')).filter(isNew).slice(0, most);
    this.#entries.push(...entries);
    return { entries, order: order.toString() };
  }

  /** Pushes a message that ends an attempt ('': none) and removes its entry, in one step; does neither if the entry was requeued. */
  async answer({ entry, owner, output }, message) {
    if (owner !== this.owner) return;
    await runScript(this.client, ANSWER_DIGEST, ANSWER, [output, `${this.part}:taken:${owner}`], ['1', Buffer.from(entry, 'latin1'), message]);
    const at = this.#entries.indexOf(entry);
    if (owner === this.owner && at >= 0) this.#entries.splice(at, 1);
  }

  /** Removes an entry that needs no message, and retries removals that have failed. */
  async settle(...places) {
    for (const place of [...this.#settled.splice(0), ...places]) await this.answer(place, '').catch(() => this.#settled.push(place));
  }

  /** Ends the heartbeats. Entries that are left are requeued after the lease. */
  async leave() {
    this.left = this.owner;
    if (this.known && !this.#doubt && this.#entries.length === 0) await this.client.send(['ZREM', `${this.part}:workers`, this.owner]);
  }
}

/**
 * Takes attempts and calls refresh(attempt) for each, up to concurrency of them at a time. grace: seconds that the work in hand may go on after SIGTERM; then
 * it is handed back. fenceEvery: seconds between its comparisons with Redis. redis: a URL or a client from createClient of node-redis. plain: it pops
 * entries and gives no heartbeats. signsEvery announces signs of life, at most one in so many seconds: choose the duration of the longest step of the
 * work. logger: as pino, winston and console have it; false: nobody hears; without one it prints to stderr.
 */
class Worker {
  #stopping = new AbortController();
  #gone = new AbortController();
  #inHand = new Set();
  #parts = [];
  #empty = 0; // how many parts in a row had nothing to take
  #taking = false;
  #changes = new EventEmitter(); // of the attempts in hand
  #stopped = new Promise((end) => { this.#stopping.signal.addEventListener('abort', () => end(null)); });
  #logged = new Map(); // when each line was

  constructor(refresh, {
    redis: where, queue, concurrency = 4, name = os.hostname(), fenceEvery = 1, grace = 10, plain = false,
    signsEvery, logger = { info: print, error: print },
  } = {}) {
    Object.assign(this, { refresh, concurrency, name, fenceEvery, grace, plain, signsEvery, queue: named(queue), logger });
    this.client = connect(where);
  }

  /** Takes no more attempts; run() returns when those in hand are finished or handed back. */
  stop() {
    this.#stopping.abort();
    this.#changes.emit('change');
  }

  /** Works until stop() is called, SIGTERM or SIGINT. Then it ends within the grace and 4 s, whatever Redis does. */
  async run() {
    const stop = () => this.stop();
    const taker = this.client.duplicate(); // to wait holds up everything else on its connection
    process.on('SIGTERM', stop).on('SIGINT', stop);
    try {
      for (const client of [this.client, taker]) client.connect();
      const names = await Promise.race([this.#withRetry(() => readNames(this.client, this.queue)), this.#stopped]);
      if (names === null) return;
      this.#say(`working for the queue ${this.queue}, ${this.concurrency} at a time`);
      const owner = newOwner();
      this.#parts = names.parts.map((part) => new Taken(this.client, part, owner));
      const watching = Promise.all([this.#watch(), this.#beat()]);
      await Promise.race([this.#takeAll(taker, names), this.#stopped]);
      await this.#finish();
      this.#gone.abort();
      await watching;
    } finally {
      process.off('SIGTERM', stop).off('SIGINT', stop);
      await Promise.allSettled([this.client.disconnect(), taker.disconnect()]);
    }
  }

  /** Logs an error, each once in 5 s: all attempts in hand may say the same. */
  log(what, error) {
    const line = `${what}: ${error.message || error.code}`;
    if (Date.now() - (this.#logged.get(line) ?? 0) < 5000) return;
    if (this.#logged.size > 100) this.#logged.clear();
    this.#logged.set(line, Date.now());
    this.#say(line, 'error');
  }

  #say(text, level = 'info') {
    const line = text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ');
    try {
      if (this.logger) this.logger[level](line);
    } catch { // it must not cost the attempt
      print(line);
    }
  }

  async #takeAll(taker, names) {
    this.#taking = true;
    while (!this.#stopping.signal.aborted) {
      if (this.#inHand.size >= this.concurrency) {
        await this.#until(() => this.#inHand.size < this.concurrency, 1);
        continue;
      }
      this.#parts.push(this.#parts.shift()); // so that no part of the queue comes last for ever
      try {
        await (this.plain ? this.#pop(taker, names) : this.#take(this.#parts[0], taker, names));
      } catch (error) {
        this.log('taking attempts', error);
        if (!this.plain && /^NOPERM/.test(error.message) && !this.#parts.some((part) => part.known)) {
          this.plain = true;
          this.log('working as with plain', new Error('an attempt of a dead worker waits for its deadline'));
        }
        await pause(500, undefined, { signal: this.#stopping.signal }).catch(() => {});
      }
    }
    this.#taking = false;
    this.#changes.emit('change');
  }

  /** Moves entries into the worker's own list. If no part of the queue has any, it waits up to a second for the next one. */
  async #take(part, taker, names) {
    const { owner } = part;
    const { entries, order } = await this.#ask(part, this.concurrency - this.#inHand.size);
    const attempts = [];
    for (const entry of entries) {
      const place = { entry, owner, output: `${part.part}-output` };
      const attempt = this.#read(Buffer.from(entry, 'latin1').toString(), part.input, names);
      if (!attempt) await part.settle(place);
      else attempts.push(Object.assign(attempt, { part, place: { ...place, output: attempt.replyTo } }));
    }
    await this.#beginAll(attempts);
    this.#empty = entries.length > 0 ? 0 : this.#empty + 1;
    if (order) await pause(1000, undefined, { signal: this.#stopping.signal }).catch(() => {}); // it gets nothing while it has one
    else if (this.#empty >= this.#parts.length && await taker.send(['BLMOVE', part.input, part.input, 'LEFT', 'LEFT', `${1 / this.#parts.length}`])) {
      this.#parts.unshift(this.#parts.pop()); // it has an entry: it is the next again
    }
  }

  async #pop(taker, names) {
    const lists = this.#parts.map((part) => part.input);
    const words = taker.isCluster ? ['BLPOP', lists[0], `${1 / lists.length}`] : ['BLPOP', ...lists, '1']; // no command spans nodes
    const [list, entry] = await taker.send(words) ?? [];
    const attempt = list && this.#read(entry, list, names);
    if (attempt) await this.#beginAll([attempt]);
  }

  /** Takes entries, or gives a heartbeat, and heeds the rest of the reply. */
  async #ask(part, most) {
    const { entries, order, forgotten } = await part.take(most);
    if (forgotten && forgotten !== part.left) {
      this.log(`forgotten as ${forgotten}`, new Error('it was silent for too long: its attempts were requeued'));
      for (const attempt of this.#inHand) if (attempt.place?.owner === forgotten && attempt.part === part) attempt.stop('requeued');
    }
    if (/^stop\b/.test(order)) this.stop();
    return { entries, order };
  }

  #read(raw, list, names) {
    try {
      return new Attempt(raw, list, names, { send: (...m) => this.#send(...m), ask: (...m) => this.#verdict(...m), signsEvery: this.signsEvery });
    } catch (error) {
      this.log('dropped an entry that cannot be read', error); // without uids no message can name it
      return null;
    }
  }

  /** One over which workers die works alone, so that no other dies with it. The worker takes nothing meanwhile. */
  async #beginAll(attempts) {
    const kills = ({ deaths }) => deaths > 1;
    const idle = () => this.#inHand.size === 0 || this.#stopping.signal.aborted;
    for (const attempt of attempts.filter((one) => !kills(one))) this.#begin(attempt);
    for (const attempt of attempts.filter(kills)) {
      await this.#until(idle);
      this.#begin(attempt);
      await this.#until(idle);
    }
  }

  #begin(attempt) {
    this.#inHand.add(attempt);
    if (attempt.place && attempt.place.owner !== attempt.part.owner) attempt.stop('requeued'); // it was forgotten meanwhile
    this.#work(attempt).catch((error) => this.log(`answering for ${attempt.uid}`, error)).finally(() => {
      this.#inHand.delete(attempt);
      this.#changes.emit('change');
    });
  }

  async #work(attempt) {
    if (this.#stopping.signal.aborted) {
      attempt.stop('shutdown');
    } else if (!attempt.signal.aborted) { // say that the work begins, and ask whether it counts: it may have been superseded while it stood in line
      const said = await this.#withRetry(() => Promise.all([
        this.client.send(['RPUSH', attempt.replyTo, message(attempt, 'started', { worker: this.name, signs_every: this.signsEvery })]),
        this.client.send(['HGET', attempt.modelKey, 'attempt_uid']),
      ]), attempt, 'started');
      if (said?.[1] !== attempt.attemptUid) attempt.stop('fence_lost');
    }
    this.#say(`${attempt.uid}: attempt ${attempt.attemptNo} begins`);
    const begun = performance.now();
    const [type, fields] = await outcomeOf(this.refresh, attempt);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    this.#say(`${attempt.uid}: ${type ?? attempt.why} after ${seconds} s${fields.reason === undefined ? '' : `: ${fields.reason}`}`);
    await this.#answer(attempt, type, fields);
  }

  /** What the guards of the policy say about the numbers of an attempt. After an error they are asked again, as the reply may be lost. */
  async #verdict(attempt, timeout) {
    const replyTo = `${attempt.queue}:reply:${attempt.attemptUid}.${letters()}`;
    const end = Date.now() + timeout * 1000;
    const waiter = this.client.duplicate(); // to wait holds up everything else on its connection
    attempt.signal.addEventListener('abort', () => waiter.disconnect());
    try {
      const said = await this.#withRetry(async () => {
        attempt.check();
        await this.client.send(['RPUSH', attempt.replyTo, message(attempt, 'ready', { metrics: attempt.metrics, reply_to: replyTo })]);
        waiter.connect();
        while (Date.now() < end) {
          attempt.check();
          const reply = await waiter.send(['BLPOP', replyTo, '1']);
          if (reply) return JSON.parse(reply[1]);
        }
        return null;
      }, attempt, 'ready');
      attempt.check();
      if (said) return said;
    } finally {
      await waiter.disconnect();
    }
    throw new Failure(`no verdict came within ${timeout} s: no poller has answered`, { errorType: 'no_verdict' });
  }

  /** Pushes a result, once: it may be handed back meanwhile. After an error it is pushed again, which is safe: the second one is a duplicate. */
  #answer(attempt, type, fields) {
    const { part, place } = attempt;
    attempt.answer ??= (async () => {
      if (type !== null) attempt.flush(true);
      const text = message(attempt, type, { ...fields, ...attempt.ending });
      const push = () => (place ? part.answer(place, text) : this.client.send(['RPUSH', attempt.replyTo, text]));
      const pushed = type !== null && await this.#withRetry(push, attempt, type) !== null;
      if (place && !pushed && !this.#gone.signal.aborted) await part.settle(place); // an attempt without an answer is requeued
    })();
    return attempt.answer;
  }

  /** Pushes a message that may be lost: a progress that is no JSON must not cost the result behind it. */
  async #send(attempt, type, fields) {
    try {
      await this.client.send(['RPUSH', attempt.replyTo, message(attempt, type, fields)]);
    } catch (error) {
      this.log(`${type} of ${attempt.uid}`, error);
    }
  }

  /**
   * Calls until Redis answers, whatever error it answers meanwhile. Null: Redis will never take it, the attempt no longer counts, or the worker
   * has to end. Without an attempt the first of these is thrown.
   */
  async #withRetry(call, attempt, type) {
    const { signal } = attempt ? this.#gone : this.#stopping;
    for (let wait = 50; ; wait = Math.min(2 * wait, 1000)) {
      try {
        return await call();
      } catch (error) {
        if (error instanceof Stopped) throw error;
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

  /** Compares the attempts in hand with Redis, and stops those that no longer count. A node that does not answer holds up no other. */
  async #watch() {
    while (await pause(this.fenceEvery * 1000, true, { signal: this.#gone.signal }).catch(() => false)) {
      for (const attempt of [...this.#inHand].filter(({ asked }) => !asked)) {
        attempt.asked = true;
        Promise.all(['attempt_uid', 'deadline_at', 'processing_at'].map((field) => this.client.send(['HGET', attempt.modelKey, field])))
          .then((found) => this.#judge(attempt, ...found))
          .catch((error) => {
            attempt.takenAt = Date.now();
            this.#miss('comparing the attempts in hand', error);
          })
          .finally(() => { attempt.asked = false; });
      }
    }
  }

  /** Prints why Redis was not heard; at the end the worker itself closes the connections. */
  #miss(what, error) { if (!this.#gone.signal.aborted) this.log(what, error); }

  /** Gives a heartbeat a second, also while all slots work. A part whose node does not answer holds up no other. */
  async #beat() {
    while (await pause(1000, true, { signal: this.#gone.signal }).catch(() => false)) {
      for (const part of this.#parts.filter(({ known, beats }) => known && !beats)) {
        part.beats = true;
        this.#ask(part, 0).then(() => part.settle()).catch((error) => this.#miss('giving a heartbeat', error)).finally(() => { part.beats = false; });
      }
    }
  }

  #judge(attempt, current, deadline, begun) {
    attempt.deadline = time(deadline);
    attempt.begun = Boolean(begun);
    if (current !== attempt.attemptUid) attempt.stop('fence_lost');
    else if (begun && !attempt.answer && attempt.deadline && Date.now() >= attempt.deadline) attempt.stop('deadline'); // before `started` is applied it moves yet
    else attempt.flush();
  }

  /** Waits for the work in hand; stops it after the grace, and hands it back if it does not stop. */
  async #finish() {
    const idle = () => !this.#taking && this.#inHand.size === 0;
    await this.#until(idle, this.grace);
    for (const attempt of this.#inHand) attempt.stop('shutdown');
    await this.#until(idle, 1);
    const left = [...this.#inHand].map((attempt) => this.#answer(attempt, attempt.why === 'shutdown' ? 'interrupted' : null, {}));
    const handedBack = Promise.allSettled(left).then(() => Promise.allSettled(this.#parts.map((part) => part.leave())));
    await Promise.race([handedBack, pause(2500, undefined, { signal: this.#gone.signal })]);
  }

  async #until(holds, seconds = Infinity) {
    const end = Date.now() + seconds * 1000;
    while (!holds() && Date.now() < end) {
      const timer = new AbortController();
      const { signal } = timer;
      await Promise.race([once(this.#changes, 'change', { signal }), pause(Math.min(end - Date.now(), 1000), undefined, { signal })]).catch(() => {});
      timer.abort();
    }
  }
}

/** The type and the fields of the message that ends an attempt; null: none, it would be stale. */
async function outcomeOf(refresh, attempt) {
  let type = 'success';
  let fields = {};
  try {
    try {
      attempt.check();
      const work = await refresh(attempt);
      if (types.isGeneratorObject(work)) throw new TypeError('expected a handler that does the work, found a generator, which nobody runs');
      fields.metrics = attempt.metrics;
      if (!attempt.changed) fields.changed = false;
      if (attempt.verdict !== null && attempt.verdict !== 'publish') fields.published = false;
    } catch (error) {
      if (error instanceof Postpone) [type, fields] = ['postponed', { retry_after: error.seconds }];
      else if (error instanceof Failure) [type, fields] = ['failure', error.fields];
      else throw error;
    }
    message(attempt, type, { ...fields, ...attempt.ending }); // what cannot be told is a failure
  } catch (error) {
    [type, fields] = ['failure', { reason: reasonOf(error), error_type: typeof error?.name === 'string' ? error.name : undefined }];
  }
  if (UNHEARD.includes(attempt.why)) return [null, {}];
  if (attempt.why === 'shutdown' && type !== 'success') return ['interrupted', {}]; // it may have failed or only stopped
  return [type, fields];
}

/** The text of what was thrown, with its class where the text is none or has no words; objects that are no errors as in a log. */
function reasonOf(error) {
  try {
    if (error === null || typeof error !== 'object') return String(error);
    if (!error.message) return error instanceof Error ? String(error) : inspect(error, { breakLength: Infinity });
    return /\p{L}/u.test(error.message) ? String(error.message) : `${error.name}: ${error.message}`;
  } catch {
    return 'an error whose text cannot be read';
  }
}

/** Tests of a worker without Redis. */
const testing = {
  /**
   * An attempt by hand, also to call a handler with. told lists its messages; sleep() only adds to slept. more are other fields of its entry in
   * docs/wire.md. verdicts are what ready() gets, the last one again: words, or replies.
   */
  attempt(payload = {}, { uid = 'model', verdicts = ['publish'], ...more } = {}) {
    const entry = { attempt_no: 1, fence: 1, due_at: '2026-01-01T00:00:00.000Z', for: 'planned', ...more, uid, attempt_uid: 'attempt', payload };
    const replies = Array.isArray(verdicts) ? verdicts.map((one) => (typeof one === 'string' ? { verdict: one } : one)) : [];
    if (replies.length === 0 || !replies.every((one) => ['publish', 'hold', 'fail', 'stale'].includes(one?.verdict))) {
      throw new TypeError(`verdicts: expected a list of publish, hold, fail or stale, or of replies with one, found ${inspect(verdicts)}`);
    }
    const told = [];
    const send = (...said) => { told.push(JSON.parse(message(...said))); };
    const ask = async () => {
      send(attempt, 'ready', { metrics: attempt.metrics, reply_to: 'testing:reply:1' });
      return replies.length > 1 ? replies.shift() : replies[0];
    };
    const attempt = new Attempt(json(entry), 'testing-input', { model: 'uid', attempt: 'attempt_uid', nested: true }, { send, ask, statusEvery: 0 });
    const sleep = async (seconds) => {
      attempt.check();
      attempt.slept += seconds;
    };
    return Object.assign(attempt, { told, slept: 0, sleep });
  },

  /** Stops the work, as a worker does by 'deadline', 'shutdown', 'fence_lost' or 'requeued': the signal ends, and check() throws Stopped. */
  stop(attempt, why) {
    if (![...UNHEARD, 'shutdown'].includes(why)) throw new TypeError(`why: expected one of ${UNHEARD.join(', ')}, shutdown, found ${why}`);
    attempt.stop(why);
  },

  /** Lets a worker do each attempt, or payload. Returns for each the messages that would go to Redis behind `started`. */
  async run(refresh, attempts) {
    const given = attempts.map((one) => (one instanceof Attempt ? one : testing.attempt(one)));
    for (const attempt of given) {
      const [type, fields] = await outcomeOf(refresh, attempt);
      attempt.answer = true;
      if (type !== null) attempt.worker.send(attempt, type, { ...fields, ...attempt.ending });
    }
    return given.map(({ told }) => told);
  },
};

/** A command was refused. counter is the reason: busy, stopped, unknown_model, malformed, no_uid or unknown_type. */
class Refused extends Error {
  constructor(reply) {
    super(reply.reason ?? reply.outcome);
    this.reply = reply;
    this.counter = reply.counter;
  }
}

/** No poller has answered in time. Sent again with this commandId the command is done once. uids: the models without a reply; replies: those so far. */
class NoReply extends Error {
  constructor(commandId, known = '', uids = [], replies = []) {
    const others = uids.length > 3 ? ` and ${uids.length - 3} others` : '';
    super(`no reply to the command ${commandId}${uids.length > 0 ? ` about ${uids.slice(0, 3).join(', ')}${others}` : ''}${known}`);
    this.commandId = commandId;
    this.uids = uids;
    this.replies = replies;
  }
}

/**
 * A model as it was when it was read; null: there is no such time or text. state is a word of docs/states.md, or 'broken' if its refresh_at cannot be
 * read. status, progress: last said by a worker. parkedBy: what it waits for. fields: all fields of its hash, texts.
 */
class Model {
  constructor(uid, fields, now) {
    const { refresh_why: refreshWhy = null, parked_by: parkedBy = null, user_friendly_status: status = null, freshness = null } = fields;
    Object.assign(this, { uid, fields, refreshWhy, parkedBy, status, freshness, state: 'scheduled' });
    this.refreshAt = time(fields.refresh_at);
    this.lastSuccessAt = time(fields.last_success_at);
    this.failingSince = time(fields.failing_since);
    this.progress = /^\d+$/.test(fields.progress) ? Number(fields.progress) : null;
    this.disabledReason = fields.refresh_disabled_user_friendly_reason ?? null;
    this.labels = Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith('label:')).map(([name, value]) => [name.slice(6), value]));
    if (fields.refresh_disabled_until_update) this.state = 'disabled';
    else if (fields.attempt_uid) this.state = fields.processing_at ? 'processing' : 'queued';
    else if (!this.refreshAt) this.state = fields.refresh_at ? 'broken' : 'finished';
    else if (this.parkedBy) this.state = 'parked';
    else if (this.refreshAt <= now) this.state = 'due';
  }
}

const BATCH = 250; // commands: a list of replies keeps 1,000
const BATCH_BYTES = 1 << 20; // what Redis gets at once
const NEVER = 253402214400000; // the score of models without a success in the set of late ones
const LIVES = ': a poller lives; to a command that is larger than its --message-cap, or no JSON, it does not reply: see `refreshd rejected ls`';

/**
 * Reads models and sends commands of an application. Each command waits up to timeout seconds for its reply, an object as docs/wire.md has it; 0: it is
 * only sent. by is who wants it, for the journal.
 */
class Client {
  #names = null;
  #used = false; // a daemon has used the queue, or it was warned that none has

  constructor({ redis: where, queue, by, timeout = 10 } = {}) {
    Object.assign(this, { by, timeout, queue: named(queue) });
    this.client = connect(where);
  }

  /** The model as it is now; null: there is none of that name. It has no payload. */
  async get(uid) {
    const key = `${await this.#home(uid)}:model:${uid}`;
    const [found, [seconds]] = await Promise.all([this.#read(['HGETALL', key]), this.#read(['TIME'], key)]);
    const pairs = Array.isArray(found) ? found.map((name, i) => [name, found[i + 1]]).filter((_, i) => i % 2 === 0) : Object.entries(found); // RESP 2, RESP 3
    return pairs.length > 0 ? new Model(uid, Object.fromEntries(pairs), seconds * 1000) : this.#nothing(null);
  }

  /** The attempts that ended last, at most n, newest first: as docs/wire.md has an entry of the history. */
  async history(uid, n = 10) {
    const entries = n > 0 ? await this.#read(['LRANGE', `${await this.#home(uid)}:history:${uid}`, '0', String(n - 1)]) : [];
    const past = entries.map(parsed).filter((entry) => entry !== null && typeof entry === 'object' && !Array.isArray(entry));
    return past.length > 0 ? past : this.#nothing(past);
  }

  /**
   * The sorted uids of the models with all labels, and a status of disabled, failing, late, parked, running or stale, of a selector such as
   * 'status=failing,tenant=t1'. It goes through all models of the first term. The next page begins after the last uid of this.
   */
  async list(selector, { after = '', limit = 1000 } = {}) {
    if (!(limit >= 1)) throw new RangeError(`limit: expected at least 1, found ${limit}`);
    const names = indexesOf(selector);
    const isLabel = (name) => name.startsWith('label:');
    let found = new Set();
    for (const home of await this.#homes()) {
      const [index, ...others] = await Promise.all(names.map((name) => this.#spelled(home, name)));
      let cursor;
      while (cursor !== '0') {
        const [next, page] = await this.#read([isLabel(index) ? 'SSCAN' : 'ZSCAN', `${home}:${index}`, cursor ?? '0', 'COUNT', '500']);
        cursor = String(next);
        const uids = page.filter((uid, i) => (isLabel(index) || i % 2 === 0) && uid > after);
        const held = await Promise.all(uids.length === 0 ? [] : others.map(
          (name) => this.#read([isLabel(name) ? 'SMISMEMBER' : 'ZMSCORE', `${home}:${name}`, ...uids])));
        uids.filter((_, i) => held.every((is, n) => is[i] && (others[n] !== 'late' || is[i] < NEVER))).forEach((uid) => found.add(uid));
        if (found.size > 2 * limit + 1000) found = new Set([...found].sort().slice(0, limit));
      }
    }
    const uids = [...found].sort().slice(0, limit);
    return uids.length > 0 ? uids : this.#nothing(uids);
  }

  /** Saves a model. definition: rrule, timezone, dtstart, refresh ('now' or 'planned'), policy (a name or an object), labels. */
  put(uid, payload, definition = {}) { return this.#send('put', { payload, ...definition, uid }); }

  /** Saves models, each an object as docs/wire.md has a definition. Returns their replies in order, of refused ones too. After NoReply repeat it. */
  putMany(definitions) { return this.#exchange('put', definitions); }

  /** Refreshes a model now. Refused (busy) while it is being refreshed, unless force is true. */
  run(uid, { force, commandId } = {}) { return this.#send('run', { uid, force, commandId }); }

  enable(uid, { commandId } = {}) { return this.#send('enable', { uid, commandId }); }
  disable(uid, reason, { commandId } = {}) { return this.#send('disable', { uid, reason, commandId }); }
  remove(uid, { commandId } = {}) { return this.#send('remove', { uid, commandId }); }

  /** Lets the success count that a guard of the policy doubts; reject() makes it a failure. */
  accept(uid, { commandId } = {}) { return this.#send('accept', { uid, commandId }); }
  reject(uid, { commandId } = {}) { return this.#send('reject', { uid, commandId }); }

  /** Lets no model of a selector (none: any) start for so long (seconds, or '2h'), until a time, or until release(). Then they start within a time. */
  hold(id, reason, options = {}) { return this.#send('hold', { id, reason, ...options }); }

  release(id, { within, commandId } = {}) { return this.#send('release', { id, within, commandId }); }

  /** Closes its connections, not a client that was handed over. */
  async close() { await this.client.disconnect(false); }

  async #send(type, { commandId, ...fields }) {
    const [reply] = await this.#exchange(type, [fields], commandId);
    if (reply?.outcome === 'refused') throw new Refused(reply);
    return reply;
  }

  /** Sends commands in steps, and returns their replies in order. */
  async #exchange(type, wanted, commandId) {
    const [sent, replies] = [[], new Map()];
    const repliesSoFar = () => sent.map((one) => replies.get(one.command_id));
    const noReply = (known) => {
      this.#names = null; // the queue may have been divided since
      const missing = sent.filter((one) => !replies.has(one.command_id));
      return new NoReply(missing[0].command_id, known, missing.flatMap(({ uid }) => uid ?? []), repliesSoFar());
    };
    for (const step of [...steps(type, wanted, commandId)]) { // what is no JSON is refused before any is sent
      sent.push(...step);
      await this.#carryOut(step, replies, noReply);
    }
    return repliesSoFar();
  }

  /**
   * Pushes commands to the parts of their models, and waits for their replies under a name of its own. After a lost connection they are pushed again: with
   * the same command_id each is carried out once.
   */
  async #carryOut(commands, replies, noReply) {
    const name = randomUUID();
    const wait = { end: Date.now() + this.timeout * 1000 };
    this.client.connect();
    for (let again = false; ; again = true) {
      try {
        const parts = new Map();
        for (const command of commands) {
          const home = await this.#home(command.uid ?? '');
          const more = { by: this.by, reply_to: this.timeout > 0 ? `${home}:reply:${name}` : undefined };
          parts.set(home, [...parts.get(home) ?? [], { ...command, ...more }]);
        }
        await Promise.all([...parts].map(([home, some]) => this.client.send(['RPUSH', `${home}-control`, ...some.map(textOf)])));
        wait.pushed = true;
        for (const [home, some] of this.timeout > 0 ? parts : []) {
          if (!await this.#await(`${home}:reply:${name}`, some, replies, wait)) throw noReply(await this.#pollers(home));
        }
        return;
      } catch (error) {
        if (error instanceof NoReply) throw error;
        const over = again && Date.now() >= wait.end;
        if (over && wait.pushed) throw noReply(`: ${error.message}`);
        if (over || error instanceof TypeError || isReply(error) || !this.client.isOpen) throw error;
        await pause(100);
      }
    }
  }

  /** Adds the replies to commands, the first one to each, and returns whether they came. */
  async #await(key, commands, replies, wait) {
    const waiter = this.client.duplicate();
    waiter.connect();
    try {
      while (commands.some((one) => !replies.has(one.command_id))) {
        if (Date.now() >= wait.end) return false;
        const first = await waiter.send(['BLPOP', key, '1']);
        const more = first && commands.length > 1 && await waiter.send(['LPOP', key, '1000']);
        for (const text of first ? [first[1], ...more || []] : []) {
          const reply = JSON.parse(text);
          const id = commands.length > 1 ? reply.command_id : commands[0].command_id; // a wrong id is not in its reply
          if (!replies.has(id)) replies.set(id, reply);
          wait.end = Date.now() + this.timeout * 1000;
        }
      }
      return true;
    } finally {
      await waiter.disconnect();
    }
  }

  /** What NoReply says: where it has waited and, if the user of Redis may ask, whether a poller lives. */
  async #pollers(home) {
    const text = ` in the queue ${home} within ${this.timeout} s`;
    const key = `${home}:pollers`;
    return Promise.all([this.#read(['ZRANGE', key, '-1', '-1', 'WITHSCORES']), this.#read(['TIME'], key)]).then(([last, [now]]) => {
      if (last.length === 0) return `${text}: no poller is running`;
      const silence = now - Math.floor(Number(last.flat()[1]) / 1000); // RESP 3 has pairs
      return text + (silence <= 5 ? LIVES : `: no poller has given a heartbeat for ${silence} s`);
    }).catch(() => text);
  }

  /** Reads, and after a lost connection once more. */
  async #read(words, key = words[1]) {
    this.client.connect();
    return this.client.send(words, { key }).catch((error) => (isReply(error) ? Promise.reject(error) : this.client.send(words, { key })));
  }

  /** Hands on that nothing was found. Once it warns if no daemon has used the queue: its name may be wrong. */
  async #nothing(nothing) {
    const asks = !this.#used;
    this.#used = true;
    const signs = [['HGET', `{${this.queue.replace(/[{}]/g, '')}}:settings`, 'layout'], ['ZRANGE', `${(await this.#homes())[0]}:pollers`, '0', '0']];
    const used = !asks || await Promise.all(signs.map((one) => this.#read(one))).then((found) => found.some((one) => one?.length > 0), () => true);
    if (!used) print(`queue ${this.queue}: nothing was ever stored in it`);
    return nothing;
  }

  /** A host as it was written, if a label has it so, or in small letters, as those of URLs are stored. */
  async #spelled(home, index) {
    const small = index.startsWith('label:host=') ? index.toLowerCase() : index;
    return small === index || await this.#read(['SCARD', `${home}:${index}`]) > 0 ? index : small;
  }

  async #homes() {
    this.client.connect();
    this.#names ??= await readNames(this.client, this.queue);
    return this.#names.parts;
  }

  /** The part of a model; of no name any, which passes a command on. */
  async #home(uid) {
    if (typeof uid !== 'string') throw new TypeError(`uid: expected a text, found ${inspect(uid)}`);
    const parts = await this.#homes();
    return parts[crc32(uid) % parts.length];
  }
}

/** As many commands as may wait for their replies together. */
function* steps(type, wanted, commandId) {
  let [step, size] = [[], 0];
  for (const one of wanted) {
    const command = { ...one, type, command_id: commandId ?? randomUUID() };
    const length = Buffer.byteLength(textOf(command));
    if (step.length === BATCH || step.length > 0 && size + length > BATCH_BYTES) {
      yield step;
      [step, size] = [[], 0];
    }
    step.push(command);
    size += length;
  }
  yield step;
}

function textOf(command) {
  try {
    return json(command, /\p{Cs}/u);
  } catch (error) {
    throw new TypeError(`${command.type} ${command.uid ?? command.id}: ${error.message}`);
  }
}

/** Writes fields. Refuses by its path what JSON.stringify leaves out or changes, but for a field without a value, and unfit texts: none, or lone surrogates. */
function json(fields, unfit = /[]/) {
  const paths = new Map(); // of the objects that hold others
  return JSON.stringify(fields, function check(name, value) {
    const holder = paths.get(this);
    const path = Array.isArray(this) ? `${holder}[${name}]` : holder ? `${holder}.${name}` : name;
    if (unfit.test(name) || typeof value === 'string' && unfit.test(value)) {
      throw new TypeError(`${unfit.test(name) ? holder : path}: expected a text in UTF-8, found one that is not`);
    }
    if (!(value === undefined && this === fields) && !isJson(value, this[name])) {
      throw new TypeError(`${path}: expected a value that JSON has, found ${inspect(this[name], { depth: -1 })}`);
    }
    if (typeof value === 'object') paths.set(value, path);
    return value;
  });
}

/** Whether JSON has a value, which toJSON may have made null. */
function isJson(value, made) {
  if (value === null) return made === null;
  if (typeof value === 'object') return /(Object|Array)\]$/.test(Object.prototype.toString.call(value)) || Object.keys(value).length > 0; // no Map, no promise
  return typeof value === 'number' ? Number.isFinite(value) : ['string', 'boolean'].includes(typeof value);
}

/** Null: a text that is no JSON. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The names of the sets whose models a selector picks. */
function indexesOf(selector) {
  return selector.split(',').flatMap((text) => {
    const term = text.trim();
    const status = /^status=(disabled|failing|late|parked|running|stale)$/.exec(term);
    if (status) return status[1] === 'late' ? ['late', 'late'] : status[1]; // the second time to look at the scores: see NEVER
    const [, name, value] = /^(?!(?:status|uid|policy|error|waits)=)([a-z][a-z0-9_.-]{0,31})=([^|=]*)$/.exec(term) ?? [];
    if (/^[A-Za-z0-9_.:/@+-]{1,60}$/.test(value ?? '')) return `label:${term}`;
    throw new TypeError(name ? `selector: expected for ${name} a label: 1-60 letters, digits or _.:/@+-, found ${JSON.stringify(value)}`
      : 'selector: expected labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them,'
      + ` found ${JSON.stringify(term)}`);
  });
}

/**
 * Connections to Redis, one to each node of a cluster. A client of node-redis waits for ever where a connection falls silent, and its cluster keeps to a
 * node that it has lost, though another has taken its place. Here commands fail without a connection or without a reply for 2.5 s, and the next one
 * connects anew: in a cluster to any node, which knows who has the key now.
 */
class Connections {
  isOpen = false;
  #nodes = new Map(); // by address; '' is that of the client that was handed over

  /** addresses of a cluster: all that are known, the last one to fail at the end; homes: who has a hash tag. Duplicates share them. */
  constructor(given, addresses, homes = new Map(), isDuplicate = false) {
    Object.assign(this, { given, addresses, homes, isDuplicate });
  }

  get isCluster() { return this.addresses !== undefined; }

  duplicate() { return new Connections(this.given, this.addresses, this.homes, true); }

  connect() { this.isOpen = true; }

  async disconnect(withGiven = !this.isDuplicate) {
    this.isOpen = false;
    const nodes = [...this.#nodes.values()];
    this.#nodes.clear();
    if (withGiven) await disconnect(this.given);
    await Promise.all(nodes.map(async ({ client, opened, isConnected }) => {
      if (!isConnected) await opened.catch(() => {}); // node-redis 4 would forget a socket that is about to connect
      await disconnect(client);
    }));
  }

  #node(address) {
    if (!this.isOpen) throw new Error('the connections are closed');
    if (this.#nodes.has(address)) return this.#nodes.get(address);
    const { socket } = this.given.options ?? {};
    const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? [];
    const to = host ? { host, port: Number(port) } : {};
    const name = address || (socket?.path ?? `${socket?.host ?? 'localhost'}:${socket?.port ?? 6379}`);
    const client = this.given.duplicate({
      url: undefined, legacyMode: false,
      socket: { ...socket, ...to, connectTimeout: 2000, reconnectStrategy: () => new Error(`no connection to ${name}`) },
    });
    const node = { client, isConnected: false };
    node.soon = (promise) => new Promise((resolve, reject) => {
      let late = 0; // once it may be this process that was blocked, with the reply standing in line
      const timer = setInterval(() => ++late === 2 && client.emit('error', new Error(`${name} does not answer`)), 1250); // commands that wait do so for a second
      client.on('error', reject);
      promise.then(resolve, reject).finally(() => {
        clearInterval(timer);
        client.off('error', reject);
      });
    });
    const drop = () => {
      if (this.#nodes.get(address) === node) this.#nodes.delete(address);
      disconnect(client);
    };
    client.setMaxListeners(0).on('error', drop).on('connect', () => { node.isConnected = true; });
    node.opened = node.soon(client.connect());
    node.opened.catch(drop); // node-redis 4.0 has no event for a wrong password
    this.#nodes.set(address, node);
    return node;
  }

  async #ask(address, words, bytes, asks) {
    const { client, soon, opened } = this.#node(address);
    await opened;
    if (asks) client.sendCommand(['ASKING']).catch(() => {}); // holds for the next command
    return soon(client.sendCommand(words, { returnBuffers: bytes, typeMapping: bytes ? { 36: Buffer } : {} })); // of node-redis 4, and of 5 and 6
  }

  /** Sends a command about a key. What Redis replies is the same in all versions of node-redis: texts, or bytes. */
  async send(words, { key = words[1], bytes = false } = {}) {
    if (!this.isCluster) return this.#ask('', words, bytes);
    const tag = /\{([^}]+)/.exec(key)?.[1] ?? key;
    const others = this.homes.has(tag) ? [] : [...this.addresses];
    let address = this.homes.get(tag) ?? others.shift();
    for (let asks = false, turns = 1; ; turns++) {
      try {
        const reply = await this.#ask(address, words, bytes, asks);
        if (!asks) this.homes.set(tag, address);
        return reply;
      } catch (error) {
        const [, kind, to] = /^(MOVED|ASK) \d+ (\S+)/.exec(error.message) ?? [];
        const lost = !isReply(error) || /^CLUSTERDOWN/.test(error.message);
        if (lost || kind === 'MOVED') this.homes.delete(tag);
        if (lost) this.addresses.delete(address);
        this.addresses.add(to ?? address);
        if (to) others.length = 0; // if that one is lost, the others are no news
        const next = to ?? (lost && others.shift());
        if (!next || turns > 5 || !this.isOpen) throw error;
        [address, asks] = [next, kind === 'ASK'];
      }
    }
  }
}

async function disconnect(client) {
  try {
    await client.disconnect();
  } catch { /* it was closed */ }
}

/** Whether Redis itself has answered the error. */
function isReply(error) { return /^[A-Z]{2,} /.test(error.message); }

function named(queue = process.env.REFRESHD_QUEUE ?? 'bigtables') {
  if (/^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_.:-]{1,64}\})$/.test(queue)) return queue;
  throw new TypeError(`queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found ${JSON.stringify(queue)}`);
}

/** What a queue is divided into, and how its messages call things. */
async function readNames(client, queue) {
  const bare = queue.replace(/^\{|\}$/g, '');
  const [parts, model, attempt, payload] = await Promise.all(
    ['parts', 'model_name', 'attempt_name', 'payload'].map((field) => client.send(['HGET', `{${bare}}:settings`, field])));
  return {
    parts: parts > 1 ? Array.from({ length: Number(parts) }, (_, i) => `{${bare}:${i}}`) : [queue],
    model: model ?? 'big_table_uid', attempt: attempt ?? 'refresh_attempt_uid', nested: payload === 'nested',
  };
}

/** A text is cut where a poller would cut it: so no message is too large for a Redis that is short of memory. */
function message(attempt, type, fields) {
  const cut = Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' && name !== 'log' ? value.slice(0, 2000) : value]);
  return json({ type, uid: attempt.uid, refresh_attempt_uid: attempt.attemptUid, ...Object.fromEntries(cut) });
}

/** Runs a script by its digest, which the daemons of refreshd have loaded, or else by its text. What it replies are bytes. */
async function runScript(client, digest, text, keys, args) {
  const words = [String(keys.length), ...keys, ...args];
  const options = { key: keys[0], bytes: true };
  return client.send(['EVALSHA', digest, ...words], options).catch((error) => {
    if (!/^NOSCRIPT/.test(error.message)) throw error;
    return client.send(['EVAL', text, ...words], options).catch((refused) => { // then the daemons will load it
      throw /^NOPERM/.test(refused.message) ? error : refused;
    });
  });
}

/** A name made of the host, the start and random letters, so that people see where and since when the worker runs. */
function newOwner() {
  const host = os.hostname().replace(/[^\w.-]+/g, '-').slice(0, 60) || 'unknown';
  const since = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  return `${host}:${process.pid}-${since}-${letters()}`;
}

function letters() { return Array.from(randomBytes(8), (byte) => 'abcdefghijklmnopqrstuvwxyz234567'[byte % 32]).join(''); }

function connect(where) {
  const url = where ?? process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
  if (typeof url === 'string') return /^rediss?-cluster:/.test(url) ? cluster(url) : new Connections(redis.createClient({ url }));
  if (typeof where.select === 'function' && typeof where.isOpen === 'boolean') return new Connections(where); // those of clusters cannot select
  throw new TypeError('redis: expected a URL (redis-cluster://HOST:PORT,... for a cluster) or what createClient of node-redis 4, 5 or 6 returns,'
    + ` found ${where.constructor?.name ?? typeof where}`);
}

function cluster(url) {
  const [, tls, username = '', password = '', hosts] = /^redis(s?)-cluster:\/\/(?:([^:@]*):(.+)@)?([^@/?#,]+(?:,[^@/?#,]+)*)\/?0?$/.exec(url) ?? [];
  if (!hosts) throw new TypeError('redis: expected redis-cluster://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...], and no database');
  const addresses = hosts.split(',').map((host) => (/:\d+$/.test(host) ? host : `${host}:6379`).replace(/[[\]]/g, ''));
  const options = { username: decodeURIComponent(username), password: decodeURIComponent(password), socket: { tls: tls !== '' } };
  return new Connections(redis.createClient(options), new Set(addresses));
}

/** Null, if there is none, or it is no time. */
function time(text) {
  const at = new Date(/^\d{4}-\d\d-\d\dT.*Z$/.test(text) ? text : NaN);
  return Number.isNaN(at.getTime()) ? null : at;
}

/** CRC-32 (IEEE 802.3), which zlib of Node has since 22 only. */
function crc32(text) {
  let sum = ~0;
  for (const byte of Buffer.from(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** Whether nobody has published under key with this fence or a higher one. Call it first in the transaction that publishes; if not, roll back. */
async function wins(client, key, fence, table = 'refreshd_fences') {
  if (fence === null) throw new TypeError('this attempt has no fence: its entry has none');
  if (!/^\w+(\.\w+)?$/.test(table)) throw new TypeError(`table: expected a name such as refreshd_fences, found ${table}`);
  if (client.execute) { // MySQL
    await client.query(`INSERT INTO ${table} (name, fence) VALUES (?, 0) ON DUPLICATE KEY UPDATE name = name`, [key]);
    const found = await client.query(`UPDATE ${table} SET fence = ? WHERE name = ? AND fence < ?`, [fence, key, fence]);
    return [].concat(found)[0].affectedRows === 1;
  }
  const result = await client.query(`INSERT INTO ${table} AS t (key, fence) VALUES ($1, $2) ON CONFLICT (key)`
    + ' DO UPDATE SET fence = excluded.fence WHERE t.fence < excluded.fence', [key, fence]);
  return result.rowCount === 1;
}

const SWALLOWED = 'write has swallowed an error of the database, or has committed: let errors out, and leave the commit to publish: ';
/**
 * Awaits write(client), which must let errors of the database out, in a transaction of its own if it wins, commits, and returns whether it has. What the
 * database ends for the sake of another one is run again, up to 10 times. The client must be one connection and no pool, and in no transaction.
 */
async function publish(client, key, fence, write, table = 'refreshd_fences') {
  if (client.getConnection || 'totalCount' in client) throw new TypeError('client: expected one connection, found a pool');
  const open = client.execute ? ([].concat(await client.query('DO 0'))[0].serverStatus ?? client.info?.status) & 1 // mysql2 says it in an answer
    : ['T', 'E'].includes(client.getTransactionStatus?.());
  if (open) throw new TypeError('client: expected a connection in no transaction, found one in a transaction');
  for (let left = 9; ; left--) {
    try {
      await client.query('BEGIN');
      const won = await wins(client, key, fence, table);
      if (won) {
        await client.query('SAVEPOINT refreshd'); // it ends with the transaction
        await write(client);
        await client.query('RELEASE SAVEPOINT refreshd').catch((error) => { throw Object.assign(error, { message: SWALLOWED + error.message }); });
      }
      await client.query(won ? 'COMMIT' : 'ROLLBACK');
      return won;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {}); // the connection may be lost; the first error says more
      if (left === 0 || !['40001', '40P01', 1213, 1020].includes(error.errno ?? error.code)) throw error;
    }
  }
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

for (const kind of [Failure, NoReply, Postpone, Refused, Stopped]) kind.prototype.name = kind.name;
module.exports = { Attempt, Client, Failure, NoReply, Postpone, Refused, Stopped, Worker, publish, testing, wins };
