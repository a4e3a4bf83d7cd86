<?php

declare(strict_types=1);

/**
 * refreshd for PHP: workers that refresh models, and applications that save them.
 *
 *     use Refreshd\{Worker, Client};
 *
 *     (new Worker(function ($attempt) {                       // a worker
 *         download($attempt->payload['input_url']);
 *     }))->run();
 *
 *     $shop = new Client(by: 'shop');                         // an application
 *     $shop->put('tbl_1', ['input_url' => 'https://example.com/feed.csv'], ['rrule' => 'every day at 6 AM']);
 *     $shop->run('tbl_1');
 *
 * Both find Redis in REDIS_URL (redis://127.0.0.1:6379 if it is not set) and the queue in REFRESHD_QUEUE (bigtables). Needs PHP 8.1 and
 * phpredis; with pcntl a worker hands its attempt back when it is asked to end. What goes over the wire is told by docs/wire.md of refreshd.
 */

namespace Refreshd;

use DateTimeImmutable;
use DateTimeInterface;
use Exception;
use Redis;
use RedisException;
use stdClass;
use Throwable;

/** Thrown by a handler: the refresh has failed. Any other exception is a failure too, of the error type that its class is called. */
class Failure extends Exception
{
    /** @var array<string, mixed> */
    public readonly array $fields;

    public function __construct(string $reason, ?string $errorType = null, ?bool $retryable = null,
        int|float|string|DateTimeInterface|null $retryAfter = null, ?string $userFriendlyReason = null)
    {
        parent::__construct($reason);
        $after = $retryAfter instanceof DateTimeInterface ? $retryAfter->format(DATE_RFC3339) : $retryAfter;
        $this->fields = array_filter(['reason' => $reason, 'error_type' => $errorType, 'retryable' => $retryable,
            'retry_after' => $after, 'user_friendly_reason' => $userFriendlyReason], fn ($value) => $value !== null);
    }
}

/** Thrown by a handler: it cannot be done now. Tried again after so many seconds; not counted as an attempt. */
class Postpone extends Exception
{
    public function __construct(public readonly float $seconds)
    {
        parent::__construct("postponed for $seconds s");
    }
}

/** The work no longer counts: 'fence_lost', 'deadline' or 'shutdown'. Let it pass. */
class Stopped extends Exception
{
}

/** One attempt to refresh a model. */
class Attempt
{
    public readonly string $uid;
    public readonly string $attemptUid;
    public readonly int $attemptNo;
    public readonly ?DateTimeImmutable $plannedAt;
    /** Of W3C Trace Context; null: the attempt is not traced. */
    public readonly ?string $traceparent;
    /** @var array<string, mixed> */
    public readonly array $payload;
    /** It moves when the work begins; null: there is none. */
    public ?DateTimeImmutable $deadline;
    /** Why the work no longer counts, as Stopped says; null: it does. */
    public ?string $why = null;
    public bool $changed = true;
    /** @internal */
    public readonly string $modelKey, $replyTo;
    /** @internal */
    public bool $begun = false;
    private float $takenAt;
    private ?array $status = null;
    private float $toldAt = 0;

    /** @internal */
    public function __construct(array $entry, string $list, Names $names, private Worker $worker)
    {
        [$uid, $attemptUid] = [$entry[$names->model] ?? null, $entry[$names->attempt] ?? null];
        if (!is_string($uid) || !is_string($attemptUid) || $uid === '' || $attemptUid === '') {
            throw new Exception('an entry without uids');
        }
        [$this->uid, $this->attemptUid, $this->attemptNo] = [$uid, $attemptUid, (int) ($entry['attempt_no'] ?? 0)];
        [$this->deadline, $this->takenAt] = [self::time($entry['deadline_at'] ?? null), microtime(true)];
        $this->plannedAt = self::time($entry['planned_at'] ?? null);
        $this->traceparent = $entry['traceparent'] ?? null;
        $ours = [$names->model, $names->attempt, 'attempt_no', 'deadline_at', 'planned_at', 'reply_to', 'traceparent'];
        $this->payload = $names->nested ? $entry['payload'] ?? [] : array_diff_key($entry, array_flip($ours));
        $queue = substr($list, 0, -strlen('-input'));
        $this->modelKey = "$queue:model:$uid";
        $this->replyTo = $entry['reply_to'] ?? "$queue-output";
    }

    /** Throws Stopped once the work no longer counts. Call it between two steps of the work, as often as you like: it asks Redis now and then. */
    public function check(): void
    {
        $this->why ??= $this->worker->judge($this);
        if ($this->why !== null) {
            throw new Stopped($this->why);
        }
    }

    /** Sleeps, and throws Stopped as soon as the work no longer counts. */
    public function sleep(float $seconds): void
    {
        $end = microtime(true) + $seconds;
        do {
            $this->check();
            $left = min($end - microtime(true), $this->worker->fenceEvery);
            if ($left > 0) {
                usleep((int) ($left * 1e6)); // a signal ends it early
            }
        } while ($left > 0);
    }

    /** Tells the owner how far the work is; progress is 0 to 100. Call it as often as you like: four a second are told, and the last. */
    public function status(string $text, ?int $progress = null): void
    {
        $this->status = ['status' => $text] + ($progress === null ? [] : ['progress' => $progress]);
        if (microtime(true) - $this->toldAt >= 0.25) {
            $this->flushStatus();
        }
    }

    /** Makes the success that follows say that the refresh found nothing new. */
    public function unchanged(): void
    {
        $this->changed = false;
    }

    /** @internal */
    public function flushStatus(): void
    {
        if ($this->status !== null && $this->why === null) {
            [$status, $this->status, $this->toldAt] = [$this->status, null, microtime(true)];
            $this->worker->tell($this, 'user_friendly_status', $status);
        }
    }

    /** @internal Whether its deadline has passed, as Redis told it last. One that passes before `started` is applied moves, but not for ever. */
    public function isLate(): bool
    {
        $passed = $this->deadline !== null && (float) $this->deadline->format('U.u') <= microtime(true);
        return $passed && ($this->begun || microtime(true) >= $this->takenAt + 60);
    }

    /** @internal */
    public static function time(mixed $text): ?DateTimeImmutable
    {
        return is_string($text) && $text !== '' ? new DateTimeImmutable($text) : null;
    }
}

/**
 * Takes attempts, one at a time, and calls $refresh($attempt) for each. To return is success; Failure, Postpone or any other exception says
 * otherwise. grace is how many seconds the work in hand may go on after SIGTERM or SIGINT; then check() stops it, and it is handed back.
 * fenceEvery is how often, in seconds, check() compares it with Redis. Run as many processes as there shall be attempts at a time.
 */
class Worker
{
    private Connection $redis;
    private string $queue, $name;
    private ?float $stoppedAt = null;
    private float $judgedAt = 0;

    public function __construct(private $refresh, ?string $redis = null, ?string $queue = null, ?string $name = null,
        public readonly float $fenceEvery = 1.0, public readonly float $grace = 10.0)
    {
        $this->redis = new Connection($redis);
        $this->queue = $queue ?? (getenv('REFRESHD_QUEUE') ?: 'bigtables');
        $this->name = $name ?? (string) gethostname();
    }

    /** Works until stop() is called or, with pcntl, until SIGTERM or SIGINT. */
    public function run(): void
    {
        foreach (function_exists('pcntl_signal') ? [SIGTERM, SIGINT] : [] as $signal) {
            pcntl_signal($signal, fn () => $this->stop());
        }
        $names = $this->redis->patiently(fn (Redis $redis) => Names::read($redis, $this->queue),
            fn (RedisException $error) => preg_match(Connection::WRONG, $error->getMessage()) ? throw $error : $this->stopping());
        $inputs = array_map(fn (string $part) => "$part-input", $names?->parts ?? []);
        while (!$this->stopping()) {
            $inputs[] = array_shift($inputs); // so that no part of the queue comes last for ever
            try {
                $taken = $this->redis->use(fn (Redis $redis) => $redis->blPop($inputs, 1));
            } catch (RedisException $error) {
                Connection::log('taking attempts', $error);
                usleep(200_000);
                continue;
            }
            $attempt = $taken ? $this->read($taken[1], $taken[0], $names) : null;
            if ($attempt !== null) {
                $this->work($attempt);
            }
        }
    }

    /** Takes no more attempts; run() returns when the one in hand is finished or handed back. */
    public function stop(): void
    {
        $this->stoppedAt ??= microtime(true);
    }

    private function stopping(): bool
    {
        if (function_exists('pcntl_signal_dispatch')) {
            pcntl_signal_dispatch();
        }
        return $this->stoppedAt !== null;
    }

    private function read(string $raw, string $list, Names $names): ?Attempt
    {
        try {
            $entry = json_decode($raw, true, 512, JSON_THROW_ON_ERROR);
            return new Attempt(is_array($entry) ? $entry : [], $list, $names, $this);
        } catch (Throwable $error) { // whatever is wrong with it: without uids nobody can be told about it
            Connection::log('dropped an entry that cannot be read', $error);
            return null;
        }
    }

    private function work(Attempt $attempt): void
    {
        // It may have been superseded while it stood in line: say that the work begins, and ask whether it counts.
        $ask = fn (Redis $redis) => $redis->hGet($attempt->modelKey, 'attempt_uid'); // a pipeline would not tell a lost connection from an absent field
        if ($this->stopping()) {
            $attempt->why = 'shutdown';
        } elseif ($this->push($attempt, 'started', ['worker' => $this->name], $ask) !== $attempt->attemptUid) {
            $attempt->why = 'fence_lost';
        }
        $this->judgedAt = microtime(true);
        [$type, $fields] = $this->outcome($attempt);
        if ($type !== null) {
            $attempt->flushStatus();
            $this->push($attempt, $type, $fields);
        }
    }

    /** The type of the message that tells how an attempt ended, and its fields; null: nothing is to be told, as it would be stale. */
    private function outcome(Attempt $attempt): array
    {
        try {
            if ($attempt->why !== null) {
                throw new Stopped($attempt->why);
            }
            ($this->refresh)($attempt);
            [$type, $fields] = ['success', $attempt->changed ? [] : ['changed' => false]];
        } catch (Postpone $wish) {
            [$type, $fields] = ['postponed', ['retry_after' => $wish->seconds]];
        } catch (Failure $failure) {
            [$type, $fields] = ['failure', $failure->fields];
        } catch (Throwable $error) {
            [$type, $fields] = ['failure', ['reason' => $error->getMessage() ?: $error::class, 'error_type' => $error::class]];
        }
        return match (true) {
            $attempt->why === 'fence_lost', $attempt->why === 'deadline' => [null, []],
            $attempt->why === 'shutdown' && $type !== 'success' => ['interrupted', []], // failed or only stopped: nobody can tell
            default => [$type, $fields],
        };
    }

    /** @internal Why an attempt no longer counts; null: it does. */
    public function judge(Attempt $attempt): ?string
    {
        if ($this->stopping() && microtime(true) >= $this->stoppedAt + $this->grace) {
            return 'shutdown';
        }
        if (microtime(true) - $this->judgedAt < $this->fenceEvery) {
            return null;
        }
        $this->judgedAt = microtime(true);
        try {
            [$current, $deadline, $begun] = $this->redis->use(fn (Redis $redis) => array_map(
                fn (string $field) => $redis->hGet($attempt->modelKey, $field), ['attempt_uid', 'deadline_at', 'processing_at']));
        } catch (RedisException $error) {
            Connection::log('comparing the attempt in hand', $error);
            return null;
        }
        [$attempt->deadline, $attempt->begun] = [Attempt::time($deadline), is_string($begun)];
        if ($current !== $attempt->attemptUid) {
            return 'fence_lost';
        }
        if ($attempt->begun && $attempt->isLate()) {
            return 'deadline'; // one that passes before `started` is applied is about to move
        }
        $attempt->flushStatus();
        return null;
    }

    /** @internal Pushes a message that may be lost. */
    public function tell(Attempt $attempt, string $type, array $fields): void
    {
        try {
            $this->redis->use(fn (Redis $redis) => $redis->rPush($attempt->replyTo, self::message($attempt, $type, $fields)));
        } catch (RedisException $error) {
            Connection::log("$type of $attempt->uid", $error);
        }
    }

    /**
     * Pushes a message, and returns what $ask is answered then. After an error it is pushed again, which is safe: the second one is a duplicate.
     * Null: Redis will never take it, the attempt no longer counts, or the worker should have ended long ago.
     */
    private function push(Attempt $attempt, string $type, array $fields, ?callable $ask = null): mixed
    {
        $message = self::message($attempt, $type, $fields);
        return $this->redis->patiently(function (Redis $redis) use ($attempt, $message, $ask) {
            $pushed = $redis->rPush($attempt->replyTo, $message);
            return $ask === null ? $pushed : $ask($redis);
        }, function (RedisException $error) use ($attempt, $type): bool {
            $never = preg_match('/^(NOPERM|WRONGTYPE)/', $error->getMessage()) === 1;
            $over = $never || $this->late() || in_array($this->judge($attempt), ['fence_lost', 'deadline'], true) || $attempt->isLate();
            if ($over) {
                Connection::log("attempt $attempt->attemptUid of $attempt->uid: $type may not have reached redis", $error);
            }
            return $over;
        });
    }

    /** Nothing is tried again when the worker should have ended long ago. */
    private function late(): bool
    {
        return $this->stopping() && microtime(true) > $this->stoppedAt + $this->grace + 5;
    }

    private static function message(Attempt $attempt, string $type, array $fields): string
    {
        // A text is cut where a poller would cut it: so no message is too large for a Redis that is short of memory.
        $cut = array_map(fn ($value) => is_string($value) ? substr($value, 0, 2000) : $value, $fields);
        return json(['type' => $type, 'uid' => $attempt->uid, 'refresh_attempt_uid' => $attempt->attemptUid] + $cut);
    }
}

/** A command was refused. counter tells the kind: busy, stopped, unknown_model, malformed, no_uid or unknown_type. */
class Refused extends Exception
{
    public readonly ?string $counter;

    public function __construct(public readonly array $reply)
    {
        parent::__construct($reply['reason'] ?? $reply['outcome']);
        $this->counter = $reply['counter'] ?? null;
    }
}

/** No poller has answered in time. The command may be carried out yet; sent again with this commandId it is done once. */
class NoReply extends Exception
{
    public function __construct(public readonly string $commandId)
    {
        parent::__construct("no reply to the command $commandId");
    }
}

/**
 * Says what an application wants. Each command waits up to timeout seconds for its reply, an array as docs/wire.md has it; outcome is
 * 'applied', 'unchanged' or 'duplicate'. With timeout 0 it is only sent. by is who wants it, for the journal.
 */
class Client
{
    private Connection $redis;
    private string $queue;
    private ?Names $names = null;

    public function __construct(?string $redis = null, ?string $queue = null, private ?string $by = null, private float $timeout = 10.0)
    {
        $this->redis = new Connection($redis);
        $this->queue = $queue ?? (getenv('REFRESHD_QUEUE') ?: 'bigtables');
    }

    /** Saves a model. definition: rrule, timezone, dtstart, refresh ('now' or 'planned'), policy (a name or an array), labels. */
    public function put(string $uid, array $payload = [], array $definition = [], ?string $commandId = null): ?array
    {
        return $this->send('put', $uid, $commandId, ['payload' => $payload ?: new stdClass()] + $definition);
    }

    /** Refreshes a model now. Refused (busy) while it is being refreshed, unless force is true. */
    public function run(string $uid, bool $force = false, ?string $commandId = null): ?array
    {
        return $this->send('run', $uid, $commandId, $force ? ['force' => true] : []);
    }

    public function enable(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('enable', $uid, $commandId, []);
    }

    public function disable(string $uid, ?string $reason = null, ?string $commandId = null): ?array
    {
        return $this->send('disable', $uid, $commandId, $reason === null ? [] : ['reason' => $reason]);
    }

    public function remove(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('remove', $uid, $commandId, []);
    }

    private function send(string $type, string $uid, ?string $commandId, array $fields): ?array
    {
        $this->names ??= $this->redis->use(fn (Redis $redis) => Names::read($redis, $this->queue));
        $home = $this->names->parts[crc32($uid) % count($this->names->parts)];
        $commandId ??= bin2hex(random_bytes(16));
        $replyTo = "$home:reply:$commandId";
        $fields += ['type' => $type, 'uid' => $uid, 'command_id' => $commandId] + ($this->by === null ? [] : ['by' => $this->by])
            + ($this->timeout > 0 ? ['reply_to' => $replyTo] : []);
        $tries = 0; // after an error once more: with the same command_id it is carried out once
        $this->redis->patiently(fn (Redis $redis) => $redis->rPush("$home-control", json($fields)), function (RedisException $error) use (&$tries) {
            return preg_match(Connection::WRONG, $error->getMessage()) ? throw $error : $tries++ > 0;
        }) ?? throw new NoReply($commandId);
        for ($end = microtime(true) + $this->timeout; microtime(true) < $end;) {
            $answer = $this->redis->use(fn (Redis $redis) => $redis->blPop([$replyTo], 1));
            if ($answer) {
                $reply = json_decode($answer[1], true, 512, JSON_THROW_ON_ERROR);
                return $reply['outcome'] === 'refused' ? throw new Refused($reply) : $reply;
            }
        }
        return $this->timeout > 0 ? throw new NoReply($commandId) : null;
    }
}

/** @internal What a queue is divided into, and how its messages call things. */
class Names
{
    private function __construct(public readonly array $parts, public readonly string $model, public readonly string $attempt,
        public readonly bool $nested)
    {
    }

    public static function read(Redis $redis, string $queue): self
    {
        $bare = trim($queue, '{}');
        [$parts, $model, $attempt, $payload] = array_map(
            fn (string $field) => $redis->hGet('{' . $bare . '}:settings', $field), ['parts', 'model_name', 'attempt_name', 'payload']);
        $names = (int) $parts > 1 ? array_map(fn (int $i) => '{' . "$bare:$i" . '}', range(0, (int) $parts - 1)) : [$queue];
        return new self($names, $model ?: 'big_table_uid', $attempt ?: 'refresh_attempt_uid', $payload === 'nested');
    }
}

/** @internal A connection that is made anew after an error. */
class Connection
{
    /** What Redis answers to whom it does not know, or who may not. */
    public const WRONG = '/^(NOAUTH|NOPERM|WRONGPASS|WRONGTYPE)/';
    private ?Redis $redis = null;
    private string $url;

    public function __construct(?string $url)
    {
        $this->url = $url ?? (getenv('REDIS_URL') ?: 'redis://127.0.0.1:6379');
    }

    /** @throws RedisException also where phpredis answers false; the connection is forgotten, as nobody knows what it says next */
    public function use(callable $call): mixed
    {
        try {
            $answer = $call($this->redis ??= $this->connect());
            $refused = $this->redis->getLastError();
            return $refused === null ? $answer : throw new RedisException($refused);
        } catch (RedisException $error) {
            $this->redis = null;
            throw $error;
        }
    }

    /** Calls until Redis answers, or until enough is true of its error; then the answer is null. */
    public function patiently(callable $call, callable $enough): mixed
    {
        for ($pause = 50_000; ; $pause = min(2 * $pause, 5_000_000)) {
            try {
                return $this->use($call);
            } catch (RedisException $error) {
                if ($enough($error)) {
                    return null;
                }
                self::log('redis', $error);
                usleep(random_int(intdiv($pause, 2), $pause));
            }
        }
    }

    private function connect(): Redis
    {
        $url = parse_url(str_replace('redis:///', 'redis://127.0.0.1/', $this->url));
        $redis = new Redis();
        $unix = ($url['scheme'] ?? '') === 'unix';
        $host = $unix ? $url['path'] : (($url['scheme'] ?? '') === 'rediss' ? 'tls://' : '') . ($url['host'] ?? '127.0.0.1');
        $port = $unix ? -1 : $url['port'] ?? 6379;
        try {
            $redis->connect($host, $port, 5, null, 0, 10);
        } catch (RedisException $error) {
            throw new RedisException("connecting to $host" . ($unix ? '' : ":$port") . ': ' . $error->getMessage(), 0, $error);
        }
        if (($url['pass'] ?? '') !== '') {
            $login = array_filter([urldecode($url['user'] ?? ''), urldecode($url['pass'])], fn (string $part) => $part !== '');
            $redis->auth(array_values($login));
        }
        parse_str($url['query'] ?? '', $query);
        $database = (int) ($query['db'] ?? ($unix ? 0 : trim($url['path'] ?? '', '/')));
        if ($database > 0) {
            $redis->select($database);
        }
        return $redis;
    }

    public static function log(string $what, Throwable $error): void
    {
        error_log("refreshd: $what: " . $error->getMessage());
    }
}

/** @internal */
function json(array $fields): string
{
    return json_encode($fields, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE);
}

// >>> scripts of refreshd, written by: go test ./scripts -run TestTheClients -update
const TAKE_DIGEST = 'a4c1cd36c70c6c8966c0342aec062366316fba1a';
const TAKE = <<<'LUA'
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
LUA;
const ANSWER_DIGEST = 'f9d19687854ff6b49b48f4439f0a55026bbdbac3';
const ANSWER = <<<'LUA'
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
LUA;
// <<< scripts
