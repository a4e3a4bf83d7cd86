// Types of refreshd.js, which documents each of them.

/** Why the work no longer counts. requeued: the worker was silent for too long, so others have the attempt. */
export type Why = 'fence_lost' | 'requeued' | 'deadline' | 'shutdown';

export class Failure extends Error {
  constructor(reason: string | Error, more?: {
    errorType?: string;
    retryable?: boolean;
    /** seconds, or a time */
    retryAfter?: number | string | Date;
    userFriendlyReason?: string;
  });
}

export class Postpone extends Error {
  constructor(seconds: number);
  readonly seconds: number;
}

export class Stopped extends Error {
  constructor(why: Why);
  readonly why: Why;
}

export class Attempt {
  private constructor();
  readonly uid: string;
  readonly attemptUid: string;
  readonly attemptNo: number;
  readonly deaths: number;
  readonly deadline: Date | null;
  readonly plannedAt: Date | null;
  readonly dueAt: Date | null;
  /** the purpose of the attempt; null: unknown */
  readonly purpose: 'planned' | 'retry' | 'run' | 'change' | null;
  /** grows with each attempt of the model: see docs/publish.md of refreshd */
  readonly fence: number | null;
  readonly traceparent: string | undefined;
  readonly payload: Record<string, any>;
  readonly signal: AbortSignal;
  readonly why: Why | undefined;
  check(): void;
  sleep(seconds: number): Promise<void>;
  /** A sign of life, where the worker announces them. Call it where something is done, not by a timer. */
  alive(): void;
  status(text: string, progress?: number): void;
  unchanged(): void;
  /** Gives the success a number, such as its rows: a small letter, then small letters, digits or _; at most 16. */
  metric(name: string, number: number): void;
  /** Whether you may publish a result with these numbers. If not, return. timeout is in seconds. */
  ready(metrics?: Record<string, number>, timeout?: number): Promise<boolean>;
  readonly verdict: 'publish' | 'hold' | 'fail' | 'stale' | null;
  readonly doubt: string | null;
  /** Hands over the output of the attempt: the last 64 KiB are kept. */
  log(text: string): void;
  /** the place of a log of the attempt instead */
  logUrl: string | undefined;
}

/** Whether you may publish under key: nobody has yet with this fence or a higher one. Call it first in the transaction that publishes. */
export function wins(client: { query(text: string, values?: any[]): Promise<any> }, key: string, fence: number | null, table?: string): Promise<boolean>;

/** Awaits write in a transaction of its own if it wins, and returns whether it has. What the database ends for another transaction is run again. */
export function publish(client: any, key: string, fence: number | null, write: (client: any) => any, table?: string): Promise<boolean>;

export class Worker {
  constructor(refresh: (attempt: Attempt) => any, options?: {
    /** a URL, or a client of node-redis */
    redis?: any;
    queue?: string;
    concurrency?: number;
    name?: string;
    /** seconds */
    fenceEvery?: number;
    /** seconds */
    grace?: number;
    /** true: it pops entries and gives no heartbeats, so an attempt of a dead worker waits for its deadline */
    plain?: boolean;
    /** announces signs of life, at most one in so many seconds; undefined: none */
    signsEvery?: number;
    /** hears of the start, each attempt, each result and each error, in place of stderr; false: nobody does */
    logger?: { info(text: string): void; error(text: string): void } | false;
  });
  run(): Promise<void>;
  stop(): void;
}

/** What became of a command, as docs/wire.md of refreshd has it. */
export interface Reply {
  outcome: 'applied' | 'unchanged' | 'duplicate' | 'refused';
  [field: string]: any;
}

export class Refused extends Error {
  constructor(reply: Reply);
  readonly reply: Reply;
  /** busy, stopped, unknown_model, malformed, no_uid or unknown_type */
  readonly counter: string;
}

export class NoReply extends Error {
  constructor(commandId: string, known?: string, uids?: string[], replies?: (Reply | undefined)[]);
  readonly commandId: string;
  /** the models without a reply */
  readonly uids: string[];
  /** those of putMany so far, in order */
  readonly replies: (Reply | undefined)[];
}

/** A model as it was when it was read; null: there is no such time or text. */
export interface Model {
  readonly uid: string;
  /** queued until a worker says that it begins; broken if its refresh_at cannot be read */
  readonly state: 'scheduled' | 'due' | 'parked' | 'queued' | 'processing' | 'finished' | 'disabled' | 'broken';
  readonly refreshAt: Date | null;
  readonly refreshWhy: string | null;
  /** what a parked model waits for */
  readonly parkedBy: string | null;
  /** last said by a worker, for the owner */
  readonly status: string | null;
  readonly progress: number | null;
  readonly lastSuccessAt: Date | null;
  readonly failingSince: Date | null;
  readonly disabledReason: string | null;
  readonly freshness: 'fresh' | 'never' | 'late' | 'stale' | null;
  readonly labels: Record<string, string>;
  /** all fields of its hash */
  readonly fields: Record<string, string>;
}

export interface Definition {
  rrule?: string;
  timezone?: string;
  dtstart?: string;
  refresh?: 'now' | 'planned';
  /** the name of a stored one, or the policy itself */
  policy?: any;
  labels?: Record<string, string>;
}

/** Commands return undefined with timeout 0, which waits for no reply. */
export class Client {
  constructor(options?: {
    /** a URL, or a client of node-redis */
    redis?: any;
    queue?: string;
    by?: string;
    /** seconds */
    timeout?: number;
  });
  get(uid: string): Promise<Model | null>;
  /** as docs/wire.md of refreshd has an entry of the history, newest first */
  history(uid: string, n?: number): Promise<Record<string, any>[]>;
  /** sorted uids by labels and one status, as in 'status=failing,tenant=t1' */
  list(selector: string, options?: { after?: string; limit?: number }): Promise<string[]>;
  put(uid: string, payload?: Record<string, any>, definition?: Definition & { commandId?: string }): Promise<Reply | undefined>;
  /** Replies in order, those of refused ones too. */
  putMany(definitions: Iterable<Definition & { uid: string; payload?: Record<string, any> }>): Promise<(Reply | undefined)[]>;
  run(uid: string, options?: { force?: boolean; commandId?: string }): Promise<Reply | undefined>;
  enable(uid: string, options?: { commandId?: string }): Promise<Reply | undefined>;
  disable(uid: string, reason?: string, options?: { commandId?: string }): Promise<Reply | undefined>;
  remove(uid: string, options?: { commandId?: string }): Promise<Reply | undefined>;
  accept(uid: string, options?: { commandId?: string }): Promise<Reply | undefined>;
  reject(uid: string, options?: { commandId?: string }): Promise<Reply | undefined>;
  /** for, within: seconds, or a text such as '2h' */
  hold(id: string, reason: string,
    options?: { selector?: string; for?: number | string; until?: Date | string; within?: number | string; commandId?: string }): Promise<Reply | undefined>;
  release(id: string, options?: { within?: number | string; commandId?: string }): Promise<Reply | undefined>;
  close(): Promise<void>;
}

export type GivenAttempt = Attempt & { readonly told: Record<string, any>[]; readonly slept: number };

export const testing: {
  attempt(payload?: Record<string, any>, options?: { uid?: string; verdicts?: (string | Record<string, any>)[]; [field: string]: any }): GivenAttempt;
  stop(attempt: Attempt, why: Why): void;
  run(refresh: (attempt: Attempt) => any, attempts: (GivenAttempt | Record<string, any>)[]): Promise<Record<string, any>[][]>;
};
