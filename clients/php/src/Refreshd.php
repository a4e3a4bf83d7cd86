<?php

declare(strict_types=1);

/** refreshd for PHP: workers that refresh models, and applications that save them. README.md has examples, docs/wire.md the wire format. */

namespace Refreshd;

use Closure;
use DateTimeImmutable;
use DateTimeInterface;
use DateTimeZone;
use Exception;
use Generator;
use InvalidArgumentException;
use JsonException;
use LogicException;
use Redis;
use RedisCluster;
use RedisClusterException;
use RedisException;
use RuntimeException;
use Throwable;
use TypeError;

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

/** The work no longer counts: 'fence_lost', 'requeued' (the worker was silent for too long: others have it), 'deadline' or 'shutdown'. Let it pass. */
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
    /** It grows with each attempt of the model, and these say the purpose of the attempt; null: unknown. */
    public readonly ?int $fence;
    public readonly ?DateTimeImmutable $dueAt;
    public readonly ?string $purpose;
    /** So many workers have died over it. */
    public readonly int $deaths;
    /** Of W3C Trace Context; null: the attempt is not traced. */
    public readonly ?string $traceparent;
    /** @var array<string, mixed> */
    public readonly array $payload;
    /** It moves when the work begins; null: there is none. */
    public ?DateTimeImmutable $deadline;
    /** Why the work no longer counts, as Stopped says; null: it does. */
    public ?string $why = null;
    public bool $changed = true;
    /** The place of a log of the attempt: an http or https URL. */
    public ?string $logUrl = null;
    /** The last verdict given to ready(), 'publish', 'hold' or 'fail', and the reason; null: none. */
    public ?string $verdict = null, $doubt = null;
    /** @internal */
    public readonly string $modelKey, $replyTo;
    /** @internal */
    public bool $begun = false;
    /** @internal @var array<string, int|float> */
    public array $metrics = [];
    public float $takenAt; // @internal
    private ?array $status = null;
    private float $sentAt;
    private string $log = '';

    /** @internal @param ?array $place as Taken has it; null: its entry is in no list, it was popped */
    public function __construct(string $raw, public readonly string $queue, public readonly ?array $place, Names $names,
        private Worker|Given $worker)
    {
        $entry = json_decode($raw, true, 512, JSON_THROW_ON_ERROR);
        $entry = is_array($entry) ? $entry : [];
        [$uid, $attemptUid] = [$entry[$names->model] ?? null, $entry[$names->attempt] ?? null];
        if (!is_string($uid) || !is_string($attemptUid) || $uid === '' || $attemptUid === '') {
            throw new Exception('an entry without uids');
        }
        [$this->uid, $this->attemptUid, $this->attemptNo] = [$uid, $attemptUid, (int) ($entry['attempt_no'] ?? 0)];
        [$this->deadline, $this->takenAt] = [self::time($entry['deadline_at'] ?? null), clock()];
        $this->sentAt = $this->takenAt - 0.25; // so that the first status is sent immediately
        $this->plannedAt = self::time($entry['planned_at'] ?? null);
        $this->traceparent = $entry['traceparent'] ?? null;
        $ours = [$names->model, $names->attempt, 'attempt_no', 'deadline_at', 'planned_at', 'reply_to', 'traceparent'];
        [$fence, $due, $purpose] = [$entry['fence'] ?? null, $entry['due_at'] ?? null, $entry['for'] ?? null];
        $fenced = is_int($fence) && is_string($due) && is_string($purpose); // otherwise they are of an older payload
        [$this->fence, $this->dueAt, $this->purpose] = $fenced ? [$fence, self::time($due), $purpose] : [null, null, null];
        if ($fenced) {
            array_push($ours, 'fence', 'due_at', 'for');
        }
        $this->deaths = is_int($entry['deaths'] ?? null) && ($fenced || $this->attemptNo === 0) ? $entry['deaths'] : 0;
        if ($this->deaths !== 0) {
            $ours[] = 'deaths';
        }
        $this->payload = $names->nested ? $entry['payload'] ?? [] : array_diff_key($entry, array_flip($ours));
        $this->modelKey = "$queue:model:$uid";
        $this->replyTo = $entry['reply_to'] ?? "$queue-output";
    }

    /** Throws Stopped once the work no longer counts. Call it between two steps of the work. It is a sign of life, as alive() is. */
    public function check(): void
    {
        $this->why ??= $this->worker->judge($this);
        if ($this->why !== null) {
            throw new Stopped($this->why);
        }
        $this->alive();
    }

    /** Says that the work gets on, at most once in signsEvery seconds. Call it where something is done: else work that hangs looks alive. */
    public function alive(): void
    {
        if ($this->status !== null) {
            $this->flush();
        } elseif ($this->worker->signsEvery !== null && clock() - $this->sentAt >= $this->worker->signsEvery) {
            $this->sendStatus([]); // a message without a status is a sign of life only
        }
    }

    /** Sleeps, and throws Stopped as soon as the work no longer counts. */
    public function sleep(float $seconds): void
    {
        $end = clock() + $seconds;
        do {
            $this->check();
            $left = min($end - clock(), $this->worker->fenceEvery, $this->worker->signsEvery ?? INF);
            if ($left > 0) {
                usleep((int) ($left * 1e6)); // a signal ends it early
            }
        } while ($left > 0);
    }

    /** Shows the owner the progress of the work; progress is 0 to 100. Call it as often as you like: it sends four a second, and the last. */
    public function status(string $text, ?int $progress = null): void
    {
        $this->status = ['status' => $text] + ($progress === null ? [] : ['progress' => $progress]);
        $this->flush();
    }

    /** Makes the success that follows say that the refresh found nothing new. */
    public function unchanged(): void
    {
        $this->changed = false;
    }

    /** Gives the success a number, such as its rows, by which a policy may doubt it: at most 16, with names of 1 to 40 small letters, digits or _. */
    public function metric(string $name, int|float $number): void
    {
        if (is_finite($number)) {
            $this->metrics[$name] = $number;
        }
    }

    /**
     * Asks whether you may publish a result with these numbers and those of metric(). If not, a guard of the policy doubts it: return then. $verdict is
     * 'hold' or 'fail', $doubt the reason. Throws Stopped, and Failure if no verdict comes within so many seconds.
     */
    public function ready(array $metrics = [], float $timeout = 60): bool
    {
        foreach ($metrics as $name => $number) {
            $this->metric((string) $name, $number);
        }
        $said = $this->worker->verdict($this, $timeout);
        [$this->verdict, $this->doubt] = [$said['verdict'] ?? null, $said['reason'] ?? null];
        if ($this->verdict === 'stale') {
            $this->why ??= 'fence_lost';
        }
        $this->check();
        return $this->verdict === 'publish';
    }

    /** Hands over the output of the attempt: the last 64 KiB of the last one are kept. Mind secrets: not all of them are masked. */
    public function log(string $text): void
    {
        $cut = strlen($text) > 65536;
        $this->log = $cut ? preg_replace('/^[\x80-\xBF]{1,3}/', '', substr($text, -65536)) : $text; // not within a character
    }

    /** @internal What every message that ends the attempt has beside its own fields. */
    public function ending(): array
    {
        return array_filter(['log' => $this->log, 'log_url' => (string) $this->logUrl], fn (string $text) => $text !== '');
    }

    /** @internal Sends the status, unless it has sent one a moment ago. */
    public function flush(bool $last = false): void
    {
        if ($this->status !== null && ($last || clock() - $this->sentAt >= $this->worker->statusEvery)) {
            $this->sendStatus($this->status);
        }
    }

    private function sendStatus(array $status): void
    {
        if ($this->why === null) {
            [$this->status, $this->sentAt] = [null, clock()];
            $this->worker->send($this, 'user_friendly_status', $status);
        }
    }

    /** @internal Whether its deadline has passed, as Redis said last. One that passes before `started` is applied moves, but not for ever. */
    public function isLate(): bool
    {
        $passed = $this->deadline !== null && (float) $this->deadline->format('U.u') <= microtime(true);
        return $passed && ($this->begun || clock() >= $this->takenAt + 60);
    }

    /** @internal */
    public static function time(mixed $text): ?DateTimeImmutable
    {
        return is_string($text) && $text !== '' ? new DateTimeImmutable($text) : null;
    }
}

/**
 * @internal The entries that the worker has taken. They are in a list of their own in Redis, in each part of the queue, until they are answered. When the worker gives
 * no heartbeat for longer than its lease, a dispatcher requeues that list, and forgets the name of the worker.
 *
 * A handler may keep the only thread for an hour, so a child process gives the heartbeats; on a cluster one for each part, so that a silent node holds
 * up no other. It ends when its parent has ended, and when the worker was forgotten: whoever finds it gone asks Redis. A place is the list of an entry: its part of the queue, the owner of the list, and the entry.
 */
class Taken
{
    /** One that was forgotten never comes back. */
    private string $owner;
    /** @var array<string, bool> parts that have heard of the owner */
    private array $known = [];
    /** @var array<string, string[]> by part the entries there, each from its arrival until Redis has its answer */
    private array $entries;
    /** @var array<string, bool> parts of which a reply was lost: more entries may be there */
    private array $doubt = [];
    /** places of entries that need no message, and that Redis has not removed yet. */
    private array $settled = [];
    /** @var int[] */
    private array $children = [];

    /** @param string[] $parts */
    public function __construct(private Connection $redis, private array $parts, private string $pool)
    {
        $this->owner = $pool;
        $this->entries = array_fill_keys($parts, []);
    }

    /** A worker of this process. Null: it cannot have a child. */
    public static function start(Connection $redis, array $parts): ?self
    {
        if (!function_exists('pcntl_fork') || !function_exists('posix_getppid')) {
            return null;
        }
        $host = substr(preg_replace('/[^A-Za-z0-9._-]+/', '-', (string) gethostname()), 0, 60) ?: 'unknown';
        return new self($redis, $parts, sprintf('%s:%d-%s-%s', $host, getmypid(), gmdate('Ymd\THis\Z'), self::letters()));
    }

    public function isKnown(): bool
    {
        return $this->known !== [];
    }

    /** Sees to the heartbeats. False: the worker was forgotten, and has another name now. */
    public function lives(): bool
    {
        $parent = getmypid(); // it may end as soon as a child is there
        foreach ($this->redis->isCluster ? array_chunk($this->parts, 1) : [$this->parts] as $at => $parts) {
            if (isset($this->children[$at]) && pcntl_waitpid($this->children[$at], $status, WNOHANG) === 0) {
                continue;
            }
            unset($this->children[$at]);
            try {
                foreach ($parts as $part) {
                    if ($this->ask($this->redis, $part, 0)[1] === 0) {
                        return $this->forgotten();
                    }
                    $this->known[$part] = true;
                }
            } catch (RedisException $lost) {
                if ($this->known === []) {
                    continue; // maybe nobody answers, and the worker says why
                }
            }
            $this->children[$at] = pcntl_fork();
            if ($this->children[$at] === 0) {
                $this->beat($parent, $parts, $this->redis->another());
            }
        }
        return $this->known !== [] ? true : throw $lost;
    }

    /** A child: it gives a heartbeat a second while its parent runs. A connection that was made before the fork belongs to the parent. */
    private function beat(int $parent, array $parts, Connection $redis): never
    {
        foreach ([SIGTERM, SIGINT] as $signal) {
            pcntl_signal($signal, SIG_IGN); // the parent may have its grace
        }
        for ($next = 0; posix_getppid() === $parent; usleep(200_000)) {
            $isStopped = preg_match('/\) T /', (string) @file_get_contents("/proc/$parent/stat")) === 1; // by SIGSTOP; known on Linux only
            if (clock() < $next || $isStopped) {
                continue;
            }
            $next = clock() + 1;
            foreach ($parts as $part) {
                try {
                    [, $follows, , $order] = $this->ask($redis, $part, 0);
                } catch (RedisException) {
                    continue; // the parent says so
                }
                if ($follows === 0) {
                    break 2;
                }
                $this->known[$part] = true;
                if (self::isStop($order) && posix_getppid() === $parent) {
                    posix_kill($parent, SIGTERM);
                }
            }
        }
        posix_kill(posix_getpid(), SIGKILL); // so that no destructor ends something of the parent
        exit;
    }

    /** Takes an entry of a part, null: there is none; and the order of an operator to the worker. @return array{?string, string} */
    public function take(string $part): array
    {
        $settled = [$this->settled, $this->settled = []][0];
        array_walk($settled, fn (array $place) => $this->settle($place));
        $known = ($this->doubt[$part] ?? false) ? -1 : count($this->entries[$part]);
        $this->doubt[$part] = true; // until there is a reply
        [, $follows, $found, $order] = $this->ask($this->redis, $part, 1, $known);
        if ($follows === 0) {
            $this->forgotten();
            return [null, ''];
        }
        [$this->known[$part], $this->doubt[$part]] = [true, false];
        foreach ($follows === 2 ? $this->entries[$part] : [] as $held) {
            $at = array_search($held, $found, true);
            if ($at !== false) {
                unset($found[$at]);
            }
        }
        $entry = array_shift($found);
        if ($entry !== null) {
            $this->entries[$part][] = $entry;
        }
        return [$entry, $order];
    }

    public function place(string $part, string $entry): array
    {
        return ['part' => $part, 'owner' => $this->owner, 'entry' => $entry];
    }

    /** Whether an entry may still be there. */
    public function has(array $place): bool
    {
        return $place['owner'] === $this->owner;
    }

    /** Pushes a message that ends an attempt ('': none) and removes its entry, in one step; does neither if the entry was requeued. */
    public function answer(array $place, string $output, string $message): bool
    {
        ['part' => $part, 'owner' => $owner, 'entry' => $entry] = $place;
        if ($this->has($place)) {
            $this->redis->script(ANSWER_DIGEST, ANSWER, [$output, "$part:taken:$owner"], ['1', $entry, $message]);
            $at = array_search($entry, $this->entries[$part], true);
            if ($at !== false) {
                unset($this->entries[$part][$at]);
            }
        }
        return true;
    }

    /** Removes an entry that needs no message; after an error, before the next one is taken. */
    public function settle(array $place): void
    {
        try {
            $this->answer($place, "{$place['part']}-output", '');
        } catch (RedisException) {
            $this->settled[] = $place;
        }
    }

    private function hush(): void
    {
        foreach ($this->children as $child) {
            posix_kill($child, SIGKILL);
            pcntl_waitpid($child, $status);
        }
        $this->children = [];
    }

    /** Ends the heartbeats. Entries that are left are requeued after the lease. */
    public function leave(): void
    {
        $this->hush();
        foreach (array_keys($this->known) as $part) {
            if ($this->entries[$part] === [] && !($this->doubt[$part] ?? false)) {
                try {
                    $this->redis->send('zRem', "$part:workers", $this->owner);
                } catch (RedisException) {
                    return; // Redis may be silent
                }
            }
        }
    }

    /** @return array{string, int, string[], string} now, what follows, entries, order; as take-attempts.lua of refreshd has it */
    private function ask(Connection $redis, string $part, int $most, int $known = 0): array
    {
        $keys = ["$part-input", "$part:taken:$this->owner", "$part:workers", "$part:orders"];
        return $redis->script(TAKE_DIGEST, TAKE, $keys, ['', $this->owner, isset($this->known[$part]) ? '' : '1', $most, $known, $this->pool]);
    }

    private function forgotten(): bool
    {
        $this->hush(); // it may take a child a moment to find out, and only one without a child gets another
        $this->redis->log("forgotten as $this->owner", new Exception('it was silent for too long: its attempts were requeued'));
        [$this->owner, $this->known] = ["$this->pool~" . self::letters(), []];
        [$this->entries, $this->doubt, $this->settled] = [array_fill_keys($this->parts, []), [], []];
        return false;
    }

    public static function isStop(string $order): bool
    {
        return preg_match('/^stop\b/', $order) === 1;
    }

    private static function letters(): string
    {
        return implode(array_map(fn () => 'abcdefghijklmnopqrstuvwxyz234567'[random_int(0, 31)], range(1, 8)));
    }
}

/**
 * Takes attempts, one at a time, and calls $refresh($attempt) for each. grace: seconds that the work in hand may go on after SIGTERM; then check() stops
 * it, and it is handed back. fenceEvery: seconds between its comparisons with Redis. plain: it pops entries and gives no heartbeats, as without pcntl.
 * signsEvery announces signs of life, at most one in so many seconds: choose the duration of the longest step of the work. logger: as PSR-3 has it;
 * false: nobody hears; without one it prints to stderr, or where error_log of php.ini says.
 */
class Worker
{
    /** Reasons to send nothing about an attempt: the message would be stale. */
    public const UNHEARD = ['fence_lost', 'requeued', 'deadline'];
    public float $statusEvery = 0.25; // @internal
    private Connection $redis;
    private string $queue, $name;
    private ?float $stoppedAt = null;
    private float $judgedAt = 0;
    private ?Taken $taken = null;
    /** How many parts in a row had nothing to take. */
    private int $empty = 0;

    public function __construct(private $refresh, ?string $redis = null, ?string $queue = null, ?string $name = null,
        public readonly float $fenceEvery = 1.0, public readonly float $grace = 10.0, private bool $plain = false,
        public readonly ?float $signsEvery = null, object|false|null $logger = null)
    {
        $this->redis = new Connection($redis, 1, $logger);
        $this->queue = Names::queue($queue);
        $this->name = $name ?? (string) gethostname();
    }

    /** Works until stop() is called or, with pcntl, until SIGTERM or SIGINT. */
    public function run(): void
    {
        $before = [];
        foreach (function_exists('pcntl_signal') ? [SIGTERM, SIGINT] : [] as $signal) {
            $before[$signal] = pcntl_signal_get_handler($signal);
            pcntl_signal($signal, fn () => $this->stop());
        }
        try {
            $this->takeAll();
        } finally {
            foreach ($before as $signal => $handler) {
                pcntl_signal($signal, $handler);
            }
        }
    }

    private function takeAll(): void
    {
        $names = $this->redis->withRetry(fn () => Names::read($this->redis, $this->queue),
            fn (RedisException $error) => preg_match(Connection::WRONG, $error->getMessage()) ? throw $error : $this->stopping());
        $parts = $names?->parts ?? [];
        $parts === [] || $this->redis->say("working for the queue $this->queue, 1 at a time");
        $this->taken = $this->plain ? null : Taken::start($this->redis, $parts);
        try {
            while (!$this->stopping()) {
                $parts[] = array_shift($parts); // so that no part of the queue comes last for ever
                try {
                    $attempt = $this->taken === null ? $this->pop($parts, $names) : $this->take($parts, $names);
                } catch (RedisException $error) {
                    $this->refused($error);
                    continue;
                }
                if ($attempt !== null) {
                    $this->work($attempt);
                }
            }
        } finally {
            $this->taken?->leave();
        }
    }

    private function refused(RedisException $error): void
    {
        $this->redis->log('taking attempts', $error);
        if ($this->taken?->isKnown() === false && preg_match('/^NOPERM/', $error->getMessage())) {
            $this->taken = null;
            $this->redis->log('working as with plain', new Exception('the attempt of a dead worker waits for its deadline'));
        }
        usleep(200_000);
    }

    private function pop(array $parts, Names $names): ?Attempt
    {
        $lists = array_map(fn (string $part) => "$part-input", $this->redis->isCluster ? [$parts[0]] : $parts); // no command spans nodes
        $popped = $this->redis->raw($lists[0], ['BLPOP', ...$lists, (string) (count($lists) / count($parts))]);
        return $popped ? $this->read($popped[1], substr($popped[0], 0, -strlen('-input')), null, $names) : null;
    }

    /** Moves an entry of the first part into the worker's own list. If no part has any, it waits up to a second for the next one. */
    private function take(array &$parts, Names $names): ?Attempt
    {
        [$entry, $order] = $this->taken->lives() ? $this->taken->take($parts[0]) : [null, ''];
        if (Taken::isStop($order)) {
            $this->stop();
        }
        if ($entry !== null) {
            $this->empty = 0;
            $place = $this->taken->place($parts[0], $entry);
            $attempt = $this->read($entry, $parts[0], $place, $names);
            if ($attempt === null) {
                $this->taken->settle($place);
            }
            return $attempt;
        }
        if ($order !== '') {
            usleep(1_000_000); // it gets nothing while it has one
        } elseif (++$this->empty >= count($parts)) {
            [$input, $seconds] = ["$parts[0]-input", (string) (1 / count($parts))];
            if (is_string($this->redis->raw($input, ['BLMOVE', $input, $input, 'LEFT', 'LEFT', $seconds]))) {
                array_unshift($parts, array_pop($parts)); // it has an entry: it is the next again
            }
        }
        return null;
    }

    /** Takes no more attempts; run() returns when the one in hand is finished or handed back. */
    public function stop(): void
    {
        $this->stoppedAt ??= clock();
        $this->redis->until ??= $this->stoppedAt + $this->grace; // a Redis that does not answer must not delay the end
    }

    private function stopping(): bool
    {
        if (function_exists('pcntl_signal_dispatch')) {
            pcntl_signal_dispatch();
        }
        return $this->stoppedAt !== null;
    }

    private function read(string $raw, string $part, ?array $place, Names $names): ?Attempt
    {
        try {
            return new Attempt($raw, $part, $place, $names, $this);
        } catch (Throwable $error) { // malformed: without uids no message can name it
            $this->redis->log('dropped an entry that cannot be read', $error);
            return null;
        }
    }

    private function work(Attempt $attempt): void
    {
        // It may have been superseded while it stood in line: say that the work begins, and ask whether it counts.
        $ask = fn () => $this->redis->send('hGet', $attempt->modelKey, 'attempt_uid'); // a pipeline would take a lost connection for an absent field
        $started = ['worker' => $this->name] + ($this->signsEvery === null ? [] : ['signs_every' => $this->signsEvery]);
        if ($this->stopping()) {
            $attempt->why = 'shutdown';
        } elseif ($this->push($attempt, 'started', $started, $ask) !== $attempt->attemptUid) {
            $attempt->why = 'fence_lost';
        }
        $this->redis->say("$attempt->uid: attempt $attempt->attemptNo begins");
        $begun = $this->judgedAt = clock();
        [$type, $fields] = self::outcome($this->refresh, $attempt);
        $reason = isset($fields['reason']) ? ": {$fields['reason']}" : '';
        $this->redis->say(sprintf('%s: %s after %.1F s%s', $attempt->uid, $type ?? $attempt->why, clock() - $begun, $reason));
        if ($this->stopping()) {
            $this->redis->until = max($this->stoppedAt + $this->grace + 2, clock() + 1);
        }
        if ($type !== null) {
            $attempt->flush(true);
            $sent = $this->push($attempt, $type, $fields + $attempt->ending()) !== null;
        }
        if ($attempt->place !== null && !($sent ?? false) && !$this->late()) { // an attempt without an answer is requeued
            $this->taken->settle($attempt->place);
        }
    }

    /** @internal What the guards of the policy say about the numbers of an attempt. After an error they are asked again, as the reply may be lost. */
    public function verdict(Attempt $attempt, float $timeout): array
    {
        $replyTo = sprintf('%s:reply:%s.%s', $attempt->queue, $attempt->attemptUid, bin2hex(random_bytes(4)));
        $message = self::message($attempt, 'ready', ['metrics' => (object) $attempt->metrics, 'reply_to' => $replyTo]);
        $end = clock() + $timeout;
        $asked = false;
        for (; clock() < $end; $attempt->check()) {
            try {
                $asked = $asked || $this->redis->send('rPush', $attempt->replyTo, $message);
                $reply = $this->redis->send('blPop', [$replyTo], 1);
                if ($reply) {
                    return json_decode($reply[1], true, 512, JSON_THROW_ON_ERROR);
                }
            } catch (RedisException $error) {
                $this->redis->log("ready of $attempt->uid", $error);
                $asked = false;
                if (preg_match('/^(NOPERM|WRONGTYPE)/', $error->getMessage())) {
                    break;
                }
                usleep(200_000);
            }
        }
        throw new Failure("no verdict came within $timeout s: no poller has answered", 'no_verdict');
    }

    /** @internal The type and the fields of the message that ends an attempt; null: none, it would be stale. */
    public static function outcome(callable $refresh, Attempt $attempt): array
    {
        try {
            try {
                if ($attempt->why !== null) {
                    throw new Stopped($attempt->why);
                }
                if ($refresh($attempt) instanceof Generator) {
                    throw new LogicException('expected a handler that does the work, found a generator, which nobody runs: it has a yield');
                }
                $fields = $attempt->changed ? [] : ['changed' => false];
                $fields += $attempt->metrics === [] ? [] : ['metrics' => $attempt->metrics];
                [$type, $fields] = ['success', $fields + (in_array($attempt->verdict, [null, 'publish'], true) ? [] : ['published' => false])];
            } catch (Postpone $wish) {
                [$type, $fields] = ['postponed', ['retry_after' => $wish->seconds]];
            } catch (Failure $failure) {
                [$type, $fields] = ['failure', $failure->fields];
            }
            self::message($attempt, $type, $fields + $attempt->ending()); // what cannot be told is a failure
        } catch (Throwable $error) {
            [$text, $class] = [$error->getMessage(), $error::class]; // a text without words comes with the class
            [$type, $fields] = ['failure', ['reason' => preg_match('/\pL/u', $text) === 0 ? rtrim("$class: $text", ': ') : $text, 'error_type' => $class]];
        }
        return match (true) {
            in_array($attempt->why, self::UNHEARD, true) => [null, []],
            $attempt->why === 'shutdown' && $type !== 'success' => ['interrupted', []], // it may have failed or only stopped
            default => [$type, $fields],
        };
    }

    /** @internal Why an attempt no longer counts; null: it does. */
    public function judge(Attempt $attempt): ?string
    {
        if ($this->stopping() && clock() >= $this->stoppedAt + $this->grace) {
            return 'shutdown';
        }
        if (clock() - $this->judgedAt < $this->fenceEvery) {
            return null;
        }
        $this->judgedAt = clock();
        try {
            if ($attempt->place !== null && (!$this->taken->lives() || !$this->taken->has($attempt->place))) {
                return 'requeued';
            }
            [$current, $deadline, $begun] = array_map(fn (string $field) => $this->redis->send('hGet', $attempt->modelKey, $field),
                ['attempt_uid', 'deadline_at', 'processing_at']);
        } catch (RedisException $error) {
            $this->redis->log('comparing the attempt in hand', $error);
            $attempt->takenAt = clock(); // the minute that it may wait to begin is one of answers
            return null;
        }
        if ($current !== $attempt->attemptUid) {
            return 'fence_lost';
        }
        try {
            [$attempt->begun, $attempt->deadline] = [is_string($begun), Attempt::time($deadline)];
        } catch (Exception $damaged) { // the deadline that was known before counts
            $this->redis->log("the deadline of $attempt->uid", $damaged);
        }
        if ($attempt->begun && $attempt->isLate()) {
            return 'deadline'; // one that passes before `started` is applied is about to move
        }
        $attempt->flush();
        return null;
    }

    /** @internal Pushes a message that may be lost. */
    public function send(Attempt $attempt, string $type, array $fields): void
    {
        $this->stopping(); // then it waits no longer than it may
        try {
            $this->redis->send('rPush', $attempt->replyTo, self::message($attempt, $type, $fields));
        } catch (RedisException $error) {
            $this->redis->log("$type of $attempt->uid", $error);
        }
    }

    /**
     * Pushes a message, and returns the answer to $ask; without $ask it ends the attempt. After an error it is pushed again, which is safe: the second one is a duplicate.
     * Null: Redis will never take it, the attempt no longer counts, or the worker should have ended long ago.
     */
    private function push(Attempt $attempt, string $type, array $fields, ?callable $ask = null): mixed
    {
        $message = self::message($attempt, $type, $fields);
        return $this->redis->withRetry(function () use ($attempt, $message, $ask) {
            if ($ask === null && $attempt->place !== null) {
                return $this->taken->answer($attempt->place, $attempt->replyTo, $message);
            }
            $pushed = $this->redis->send('rPush', $attempt->replyTo, $message);
            return $ask === null ? $pushed : $ask();
        }, function (RedisException $error) use ($attempt, $type): bool {
            $never = preg_match('/^(NOPERM|WRONGTYPE)/', $error->getMessage()) === 1;
            $why = $this->judge($attempt);
            // What was done in time counts however late: an outage is nobody's timeout.
            $gone = $why !== null && $why !== 'shutdown' && ($why !== 'deadline' || $ask !== null);
            $over = $never || $this->late() || $gone || $attempt->isLate() && !$attempt->begun;
            if ($over) {
                $this->redis->log("attempt $attempt->attemptUid of $attempt->uid: $type may not have reached redis", $error);
            }
            return $over;
        });
    }

    /** Nothing is tried again when the worker should have ended long ago. */
    private function late(): bool
    {
        return $this->stopping() && clock() > $this->redis->until;
    }

    /** @internal */
    public static function message(Attempt $attempt, string $type, array $fields): string
    {
        // Texts are cut to 2,000 characters: so no message is too large for a Redis that is short of memory.
        $cut = fn ($value, string $name) => is_string($value) && $name !== 'log'
            ? (preg_match('/^.{0,2000}/su', $value, $found) ? $found[0] : substr($value, 0, 2000)) : $value;
        $cut = array_combine(array_keys($fields), array_map($cut, $fields, array_keys($fields)));
        return json(['type' => $type, 'uid' => $attempt->uid, 'refresh_attempt_uid' => $attempt->attemptUid] + $cut);
    }
}

/** A command was refused. counter is the reason: busy, stopped, unknown_model, malformed, no_uid or unknown_type. */
class Refused extends Exception
{
    public readonly ?string $counter;

    public function __construct(public readonly array $reply)
    {
        parent::__construct($reply['reason'] ?? $reply['outcome']);
        $this->counter = $reply['counter'] ?? null;
    }
}

/** No poller has answered in time. Sent again with this commandId the command is done once. uids: the models without a reply; replies: those so far. */
class NoReply extends Exception
{
    public function __construct(public readonly string $commandId, string $known = '', public readonly array $uids = [], public array $replies = [])
    {
        $about = $uids === [] ? '' : ' about ' . implode(', ', array_slice($uids, 0, 3)) . (count($uids) > 3 ? sprintf(' and %d others', count($uids) - 3) : '');
        parent::__construct("no reply to the command $commandId$about$known");
    }
}

/** Tests of a worker without Redis. */
class Testing
{
    /**
     * An attempt by hand, also to call a handler with. Its told lists its messages; sleep() only adds to slept. more are other fields of its entry in
     * docs/wire.md. verdicts are what ready() gets, the last one again: words, or replies.
     */
    public static function attempt(array $payload = [], string $uid = 'model', array $verdicts = ['publish'], array $more = []): Given
    {
        $replies = array_map(fn (mixed $one) => is_string($one) ? ['verdict' => $one] : $one, $verdicts);
        foreach ($replies ?: [null] as $reply) {
            if (!in_array($reply['verdict'] ?? null, ['publish', 'hold', 'fail', 'stale'], true)) {
                throw new InvalidArgumentException('verdicts: expected a list of publish, hold, fail or stale, or of replies with one, found ' . json_encode($verdicts));
            }
        }
        return new Given(['uid' => $uid, 'attempt' => 'attempt', 'payload' => $payload] + $more
            + ['attempt_no' => 1, 'fence' => 1, 'due_at' => '2026-01-01T00:00:00.000Z', 'for' => 'planned'], array_values($replies));
    }

    /** Stops the work, as a worker does by 'deadline', 'shutdown', 'fence_lost' or 'requeued': check() and sleep() throw Stopped from now on. */
    public static function stop(Attempt $attempt, string $why): void
    {
        if (!in_array($why, [...Worker::UNHEARD, 'shutdown'], true)) {
            throw new InvalidArgumentException('why: expected one of ' . implode(', ', Worker::UNHEARD) . ", shutdown, found $why");
        }
        $attempt->why ??= $why;
    }

    /** Lets a worker do each attempt, or payload. Returns for each the messages that would go to Redis behind `started`. */
    public static function run(callable $refresh, array $attempts): array
    {
        return array_map(function (Given|array $one) use ($refresh): array {
            $attempt = is_array($one) ? self::attempt($one) : $one;
            [$type, $fields] = Worker::outcome($refresh, $attempt);
            return $type === null ? $attempt->told : $attempt->send($attempt, $type, $fields + $attempt->ending());
        }, $attempts);
    }
}

/** An attempt by hand, which is its own worker: see Testing. */
class Given extends Attempt
{
    /** @var array[] messages that it has sent */
    public array $told = [];
    public float $slept = 0;
    public ?float $signsEvery = null; // @internal, as are statusEvery and the last three methods
    public float $statusEvery = 0;

    public function __construct(array $entry, private array $verdicts)
    {
        parent::__construct(json($entry), 'testing', null, new Names([], 'uid', 'attempt', true), $this);
    }

    public function sleep(float $seconds): void
    {
        $this->check();
        $this->slept += $seconds;
    }

    public function judge(): ?string
    {
        return null; // it is stopped by hand
    }

    public function verdict(): array
    {
        $this->send($this, 'ready', ['metrics' => (object) $this->metrics, 'reply_to' => 'testing:reply:1']);
        return count($this->verdicts) > 1 ? array_shift($this->verdicts) : $this->verdicts[0];
    }

    public function send(self $attempt, string $type, array $fields): array
    {
        $this->told[] = json_decode(Worker::message($attempt, $type, $fields), true);
        return $this->told;
    }
}

/**
 * A model as it was when it was read; null: there is no such time or text. state is a word of docs/states.md, or 'broken' if its refresh_at cannot be
 * read. status, progress: last said by a worker. parkedBy: what it waits for. fields: all fields of its hash, texts.
 */
class Model
{
    public readonly ?DateTimeImmutable $refreshAt, $lastSuccessAt, $failingSince;
    public readonly ?string $refreshWhy, $parkedBy, $status, $disabledReason, $freshness;
    public readonly ?int $progress;
    public readonly array $labels;
    public readonly string $state;

    /** @internal */
    public function __construct(public readonly string $uid, public readonly array $fields, int $now)
    {
        $has = fn (string $name) => ($fields[$name] ?? '') !== '';
        [$this->refreshAt, $this->lastSuccessAt, $this->failingSince] = array_map( // null: it cannot be read
            fn (string $name) => DateTimeImmutable::createFromFormat('Y-m-d\TH:i:s.v\Z', $fields[$name] ?? '', new DateTimeZone('UTC')) ?: null,
            ['refresh_at', 'last_success_at', 'failing_since']);
        [$this->refreshWhy, $this->parkedBy, $this->freshness, $this->status, $this->disabledReason] = array_map(fn (string $name) => $fields[$name] ?? null,
            ['refresh_why', 'parked_by', 'freshness', 'user_friendly_status', 'refresh_disabled_user_friendly_reason']);
        $this->progress = ctype_digit($fields['progress'] ?? '') ? (int) $fields['progress'] : null;
        $labels = array_filter($fields, fn (int|string $name) => str_starts_with((string) $name, 'label:'), ARRAY_FILTER_USE_KEY);
        $this->labels = array_combine(array_map(fn (string $name) => substr($name, 6), array_keys($labels)), $labels);
        $this->state = match (true) {
            $has('refresh_disabled_until_update') => 'disabled',
            $has('attempt_uid') => $has('processing_at') ? 'processing' : 'queued',
            $this->refreshAt === null => $has('refresh_at') ? 'broken' : 'finished',
            $has('parked_by') => 'parked',
            default => $this->refreshAt->getTimestamp() <= $now ? 'due' : 'scheduled',
        };
    }
}

/**
 * Reads models and sends commands of an application. Each command waits up to timeout seconds for its reply, an array as docs/wire.md has it; 0: it is
 * only sent. by is who wants it, for the journal.
 */
class Client
{
    private const BATCH = 250; // commands: a list of replies keeps 1,000
    private const BATCH_BYTES = 1 << 20; // what Redis gets at once
    private const NEVER = 253402214400000; // the score of models without a success in the set of late ones
    private const LIVES = ': a poller lives; to a command that is larger than its --message-cap, or no JSON, it does not reply: see `refreshd rejected ls`';
    private Connection $redis;
    private string $queue;
    private ?Names $names = null;
    private bool $used = false; // a daemon has used the queue, or it was warned that none has

    public function __construct(?string $redis = null, ?string $queue = null, private ?string $by = null, private float $timeout = 10.0)
    {
        $this->redis = new Connection($redis);
        $this->queue = Names::queue($queue);
    }

    /** The model as it is now; null: there is none of that name. It has no payload. */
    public function get(string $uid): ?Model
    {
        $key = $this->home($uid) . ":model:$uid";
        [$fields, $now] = [$this->twice(fn () => $this->redis->send('hGetAll', $key)), $this->read($key, ['TIME'])];
        return $fields ? new Model($uid, $fields, (int) $now[0]) : $this->nothing(null);
    }

    /** The attempts that ended last, at most $n, newest first: as docs/wire.md has an entry of the history. @return array[] */
    public function history(string $uid, int $n = 10): array
    {
        $key = $this->home($uid) . ":history:$uid";
        $entries = array_map(fn (string $entry) => json_decode($entry, true), $n > 0 ? $this->read($key, ['LRANGE', $key, 0, $n - 1]) : []);
        $past = array_values(array_filter($entries, fn (mixed $entry) => is_array($entry) && !array_is_list($entry))); // or it is no JSON object
        return $past ?: $this->nothing([]);
    }

    /**
     * The sorted uids of the models with all labels, and a status of disabled, failing, late, parked, running or stale, of a selector such as
     * 'status=failing,tenant=t1'. It goes through all models of the first term. The next page begins after the last uid of this. @return string[]
     */
    public function list(string $selector, string $after = '', int $limit = 1000): array
    {
        if ($limit < 1) {
            throw new InvalidArgumentException("limit: expected at least 1, found $limit");
        }
        [$names, $found, $isLabel] = [self::indexes($selector), [], fn (string $index) => str_starts_with($index, 'label:')];
        $bound = function (array $found) use ($limit): array {
            sort($found, SORT_STRING);
            return array_slice(array_values(array_unique($found)), 0, $limit);
        };
        foreach ($this->parts() as $home) {
            $indexes = array_map(fn (string $name) => $this->spelled($home, $name), $names);
            $first = array_shift($indexes);
            for ($cursor = null; $cursor !== '0';) {
                $words = [$isLabel($first) ? 'SSCAN' : 'ZSCAN', "$home:$first", $cursor ?? '0', 'COUNT', 500];
                [$cursor, $page] = $this->read($words[1], $words);
                $uids = $isLabel($first) ? $page : array_column(array_chunk($page, 2), 0);
                $uids = array_values(array_filter($uids, fn (string $uid) => strcmp($uid, $after) > 0));
                foreach ($indexes as $other) {
                    $held = $uids === [] ? [] : $this->read("$home:$other", [$isLabel($other) ? 'SMISMEMBER' : 'ZMSCORE', "$home:$other", ...$uids]);
                    $held = array_filter($held, fn (mixed $score) => $score && ($other !== 'late' || $score < self::NEVER));
                    $uids = array_values(array_intersect_key($uids, $held));
                }
                $found = count($found) > 2 * $limit + 1000 ? $bound([...$found, ...$uids]) : [...$found, ...$uids];
            }
        }
        return $bound($found) ?: $this->nothing([]);
    }

    /** Saves a model. definition: rrule, timezone, dtstart, refresh ('now' or 'planned'), policy (a name or an array), labels. */
    public function put(string $uid, array $payload = [], array $definition = [], ?string $commandId = null): ?array
    {
        return $this->send('put', $commandId, ['uid' => $uid, 'payload' => $payload] + $definition);
    }

    /** Saves models, each an array as docs/wire.md has a definition. Returns their replies in order, of refused ones too. After NoReply repeat it. */
    public function putMany(iterable $definitions): array
    {
        return $this->exchange('put', $definitions);
    }

    private static function text(array $command): string
    {
        $command = array_filter($command, fn ($value) => $value !== null);
        try {
            self::check($command, '');
            if (is_array($command['policy']['delays_by_error'] ?? null)) {
                $command['policy']['delays_by_error'] = (object) $command['policy']['delays_by_error'];
            }
            foreach (array_intersect(['payload', 'labels', 'policy'], array_keys($command)) as $name) { // an empty array would become a list
                $command[$name] = is_array($command[$name]) ? (object) $command[$name] : $command[$name];
            }
            return json($command, 0);
        } catch (JsonException $error) {
            throw new InvalidArgumentException($command['type'] . ' ' . json_encode($command['uid'] ?? $command['id'] ?? null) . ': ' . $error->getMessage());
        }
    }

    /** Refuses by its path what JSON has not. */
    private static function check(mixed $value, string $path): void
    {
        foreach (is_array($value) ? $value : [] as $name => $one) {
            self::check((string) $name, $path);
            self::check($one, array_is_list($value) ? "{$path}[$name]" : ltrim("$path.$name", '.'));
        }
        if ($value instanceof Closure) { // it would become {}
            throw new JsonException("$path: expected a value that JSON has, found a function");
        }
        is_string($value) && preg_match('//u', $value) !== 1 && throw new JsonException("$path: expected a text in UTF-8, found one that is not");
    }

    /** Refreshes a model now. Refused (busy) while it is being refreshed, unless force is true. */
    public function run(string $uid, bool $force = false, ?string $commandId = null): ?array
    {
        return $this->send('run', $commandId, ['uid' => $uid, 'force' => $force ?: null]);
    }

    public function enable(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('enable', $commandId, ['uid' => $uid]);
    }

    public function disable(string $uid, ?string $reason = null, ?string $commandId = null): ?array
    {
        return $this->send('disable', $commandId, ['uid' => $uid, 'reason' => $reason]);
    }

    public function remove(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('remove', $commandId, ['uid' => $uid]);
    }

    /** Lets the success count that a guard of the policy doubts; reject() makes it a failure. */
    public function accept(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('accept', $commandId, ['uid' => $uid]);
    }

    public function reject(string $uid, ?string $commandId = null): ?array
    {
        return $this->send('reject', $commandId, ['uid' => $uid]);
    }

    /** Lets no model of a selector (null: any) start for so long (seconds, or '2h'), until a time, or until release(). Then they start within a time. */
    public function hold(string $id, string $reason, ?string $selector = null, int|string|null $for = null, DateTimeInterface|string|null $until = null,
        int|string|null $within = null, ?string $commandId = null): ?array
    {
        $until = $until instanceof DateTimeInterface ? $until->format(DATE_RFC3339) : $until;
        return $this->send('hold', $commandId, compact('id', 'reason', 'selector', 'for', 'until', 'within'));
    }

    public function release(string $id, int|string|null $within = null, ?string $commandId = null): ?array
    {
        return $this->send('release', $commandId, compact('id', 'within'));
    }

    private function send(string $type, ?string $commandId, array $fields): ?array
    {
        [$reply] = $this->exchange($type, [$fields], $commandId);
        return ($reply['outcome'] ?? null) === 'refused' ? throw new Refused($reply) : $reply;
    }

    /** Pushes commands in steps to the parts of their models, and waits for their replies under a name of its own. */
    private function exchange(string $type, iterable $wanted, ?string $commandId = null): array
    {
        [$name, $sent, $replies] = [bin2hex(random_bytes(16)), [], []];
        foreach (iterator_to_array($this->steps($type, $wanted, $commandId, $name), false) as $step) { // what is no JSON is refused before any is sent
            [$sent, $parts] = [$sent + $step, []];
            foreach ($step as $id => $one) {
                $parts[$one['home']][$id] = $one['text'];
            }
            $this->twice(fn () => $this->push($parts, $replies)); // with the same command_id each is carried out once
            foreach ($this->timeout > 0 ? array_keys($parts) : [] as $home) {
                if (!$this->await($parts, (string) $home, "$home:reply:$name", $commandId, $replies)) {
                    throw $this->noReply((string) $home, $sent, $replies);
                }
            }
        }
        return array_map(fn (int|string $id) => $replies[$id] ?? null, array_keys($sent));
    }

    private function push(array $parts, array $replies): void
    {
        foreach ($parts as $home => $texts) {
            $missing = array_values(array_diff_key($texts, $replies));
            $missing === [] || $this->redis->send('rPush', "$home-control", ...$missing);
        }
    }

    /** Adds the replies to the commands in a part, the first one to each, and returns whether they came. After a lost connection it pushes again. */
    private function await(array $parts, string $home, string $key, ?string $commandId, array &$replies): bool
    {
        [$end, $lost] = [clock() + $this->timeout, false];
        while (array_diff_key($parts[$home], $replies) !== []) {
            if (clock() >= $end) {
                return false;
            }
            try {
                $lost && $this->push($parts, $replies);
                [$lost, $first] = [false, $this->redis->send('blPop', [$key], 1)];
                $more = $first && count($parts[$home]) > 1 ? $this->redis->raw($key, ['LPOP', $key, 1000]) : [];
            } catch (RedisException $error) {
                [$lost, $first] = [true, preg_match('/^[A-Z]{2,} /', $error->getMessage()) ? throw $error : false];
                usleep(100_000);
            }
            foreach ($first ? [$first[1], ...($more ?: [])] : [] as $text) {
                $reply = json_decode($text, true, 512, JSON_THROW_ON_ERROR);
                $replies[$commandId ?? $reply['command_id'] ?? ''] ??= $reply; // a wrong id is not in its reply
                $end = clock() + $this->timeout;
            }
        }
        return true;
    }

    /** Commands by their ids: as many as may wait for their replies together. */
    private function steps(string $type, iterable $wanted, ?string $commandId, string $name): iterable
    {
        [$step, $size] = [[], 0];
        foreach ($wanted as $fields) {
            $home = $this->home($fields['uid'] ?? '');
            $id = $commandId ?? bin2hex(random_bytes(16));
            $replyTo = $this->timeout > 0 ? "$home:reply:$name" : null;
            $text = self::text(['type' => $type, 'command_id' => $id, 'by' => $this->by, 'reply_to' => $replyTo] + $fields);
            if (count($step) === self::BATCH || $step !== [] && $size + strlen($text) > self::BATCH_BYTES) {
                yield $step;
                [$step, $size] = [[], 0];
            }
            $step[$id] = ['home' => $home, 'text' => $text] + array_intersect_key($fields, ['uid' => true]);
            $size += strlen($text);
        }
        yield $step;
    }

    private function noReply(string $home, array $sent, array $replies): NoReply
    {
        $this->names = null; // the queue may have been divided since
        $missing = array_diff_key($sent, $replies);
        return new NoReply((string) array_key_first($missing), $this->pollers($home), array_column($missing, 'uid'),
            array_map(fn (int|string $id) => $replies[$id] ?? null, array_keys($sent)));
    }

    /** What NoReply says: where it has waited and, if the user of Redis may ask, whether a poller lives. */
    private function pollers(string $home): string
    {
        $text = " in the queue $home within $this->timeout s";
        try {
            $last = $this->read("$home:pollers", ['ZRANGE', "$home:pollers", -1, -1, 'WITHSCORES']);
            $silence = (int) $this->read("$home:pollers", ['TIME'])[0] - intdiv((int) ($last[1] ?? 0), 1000);
        } catch (RedisException) {
            return $text;
        }
        return $text . match (true) {
            !$last => ': no poller is running',
            $silence <= 5 => self::LIVES,
            default => ": no poller has given a heartbeat for $silence s",
        };
    }

    /** Calls, and after a lost connection once more. */
    private function twice(callable $call): mixed
    {
        $tries = 0;
        return $this->redis->withRetry($call, function (RedisException $error) use (&$tries) {
            return preg_match('/^[A-Z]{2,} /', $error->getMessage()) || $tries++ > 0 ? throw $error : false;
        });
    }

    private function read(string $key, array $words): mixed
    {
        return $this->twice(fn () => $this->redis->raw($key, $words));
    }

    /** Hands on that nothing was found. Once it warns if no daemon has used the queue: its name may be wrong. */
    private function nothing(?array $nothing): ?array
    {
        [$settings, $pollers] = ['{' . trim($this->queue, '{}') . '}:settings', $this->parts()[0] . ':pollers'];
        try {
            $used = $this->used || $this->read($settings, ['HGET', $settings, 'layout']) || $this->read($pollers, ['ZRANGE', $pollers, 0, 0]);
            $used || $this->redis->say("queue $this->queue: nothing was ever stored in it");
        } catch (RedisException) { // the user may not ask
        }
        $this->used = true;
        return $nothing;
    }

    /** A host as it was written, if a label has it so, or in small letters, as those of URLs are stored. */
    private function spelled(string $home, string $index): string
    {
        $small = str_starts_with($index, 'label:host=') ? strtolower($index) : $index;
        return $small === $index || $this->read("$home:$index", ['SCARD', "$home:$index"]) > 0 ? $index : $small;
    }

    /** @return string[] */
    private function parts(): array
    {
        return ($this->names ??= $this->twice(fn () => Names::read($this->redis, $this->queue)))->parts;
    }

    /** The part of a model; of no name any, which passes the command on. */
    private function home(mixed $uid): string
    {
        is_string($uid) || throw new TypeError('uid: expected a text, found ' . json_encode($uid));
        return $this->parts()[crc32($uid) % count($this->parts())];
    }

    /** The names of the sets whose models a selector picks. @return string[] */
    private static function indexes(string $selector): array
    {
        $names = array_map(function (string $term): string {
            if (preg_match('~^status=(disabled|failing|late|parked|running|stale)$~D', $term, $found)) {
                return $found[1];
            }
            $like = preg_match('~^(?!(?:status|uid|policy|error|waits)=)([a-z][a-z0-9_.-]{0,31})=([^|=]*)$~D', $term, $found) === 1;
            if ($like && preg_match('~^[A-Za-z0-9_.:/@+-]{1,60}$~D', $found[2])) {
                return "label:$term";
            }
            throw new InvalidArgumentException('selector: expected ' . ($like ? "for $found[1] a label: 1-60 letters, digits or _.:/@+-"
                : 'labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them')
                . ', found ' . json_encode($like ? $found[2] : $term, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES));
        }, array_map(trim(...), explode(',', $selector)));
        return in_array('late', $names, true) ? [...$names, 'late'] : $names; // the second one looks at the scores: see NEVER
    }
}

/** @internal What a queue is divided into, and how its messages call things. */
class Names
{
    public function __construct(public readonly array $parts, public readonly string $model, public readonly string $attempt,
        public readonly bool $nested)
    {
    }

    public static function queue(?string $name): string
    {
        $name ??= getenv('REFRESHD_QUEUE') ?: 'bigtables';
        return preg_match('~^([A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_.:-]{1,64}\})$~D', $name) === 1 ? $name : throw new InvalidArgumentException(
            'queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found ' . json_encode($name, JSON_UNESCAPED_UNICODE));
    }

    public static function read(Connection $redis, string $queue): self
    {
        $bare = trim($queue, '{}');
        [$parts, $model, $attempt, $payload] = array_map(
            fn (string $field) => $redis->send('hGet', '{' . $bare . '}:settings', $field), ['parts', 'model_name', 'attempt_name', 'payload']);
        $names = (int) $parts > 1 ? array_map(fn (int $i) => '{' . "$bare:$i" . '}', range(0, (int) $parts - 1)) : [$queue];
        return new self($names, $model ?: 'big_table_uid', $attempt ?: 'refresh_attempt_uid', $payload === 'nested');
    }
}

/** @internal A connection that is made anew after an error. */
class Connection
{
    /** What Redis answers to whom it does not know, or who may not. */
    public const WRONG = '/^(NOAUTH|NOPERM|WRONGPASS|WRONGTYPE)/';
    public readonly bool $isCluster;
    /** @var string[] of a cluster, the last one to fail at the end */
    private array $hosts = [];
    private Redis|RedisCluster|null $redis = null;
    private string $url;
    /** Until when a reply is waited for, or a moment if that is over; null: as patience says. */
    public ?float $until = null;

    /** @param float $patience how many seconds it waits for a connection; for a reply twice as long */
    public function __construct(?string $url, private float $patience = 5, private object|false|null $logger = null)
    {
        if (!extension_loaded('redis') || version_compare(phpversion('redis'), '5.3', '<')) {
            throw new RuntimeException('refreshd: expected the extension phpredis 5.3 or newer, found ' . (phpversion('redis') ?: 'none'));
        }
        $this->url = $url ?? (getenv('REDIS_URL') ?: 'redis://127.0.0.1:6379');
        $this->isCluster = preg_match('~^rediss?-cluster:~', $this->url) === 1;
    }

    /**
     * Calls a method of phpredis. One command at a time: on a cluster the next one hides its error.
     *
     * @throws RedisException also where phpredis answers false; the connection is forgotten, as its next reply is unknown
     */
    public function send(string $method, mixed ...$args): mixed
    {
        $async = function_exists('pcntl_async_signals') && pcntl_async_signals(false); // PHP loses a signal that comes with an exception
        try {
            $this->redis ??= $this->isCluster ? $this->cluster() : $this->connect();
            if ($this->until !== null && !$this->isCluster) {
                $this->redis->setOption(Redis::OPT_READ_TIMEOUT, max(0.5, min(2 * $this->patience, $this->until - clock())));
            }
            $answer = $this->redis->$method(...$args);
            $refused = $this->redis->getLastError();
            return $refused === null ? $answer : throw new RedisException($refused);
        } catch (RedisException | RedisClusterException $error) {
            if (str_starts_with($error->getMessage(), 'NOSCRIPT')) { // then nothing is lost
                $this->redis->clearLastError();
            } else {
                $this->redis = null;
            }
            $place = preg_replace('~//.*@~', '//', $this->url); // without the password
            throw $error instanceof RedisException ? $error : new RedisException("$place: " . $error->getMessage(), 0, $error);
        } finally {
            if ($async) {
                pcntl_async_signals(true);
                pcntl_signal_dispatch();
            }
        }
    }

    /** Sends the words of a command to the node of a key. It fails at once if that is dead; the methods of phpredis go on asking the others. */
    public function raw(string $key, array $words): mixed
    {
        return $this->send('rawCommand', ...($this->isCluster ? [$key] : []), ...$words);
    }

    /** Runs a script by its digest, which the daemons of refreshd have loaded, or else by its text. */
    public function script(string $digest, string $text, array $keys, array $args): mixed
    {
        $words = [count($keys), ...$keys, ...$args];
        try {
            return $this->raw($keys[0], ['EVALSHA', $digest, ...$words]);
        } catch (RedisException $unloaded) {
            try {
                return str_starts_with($unloaded->getMessage(), 'NOSCRIPT') ? $this->raw($keys[0], ['EVAL', $text, ...$words]) : throw $unloaded;
            } catch (RedisException $error) { // a user who may only run scripts that the daemons load waits for them
                throw str_starts_with($error->getMessage(), 'NOPERM') ? $unloaded : $error;
            }
        }
    }

    /** One to the same Redis. */
    public function another(): self
    {
        return new self($this->url, $this->patience);
    }

    /** Calls until Redis answers, or until enough is true of its error; then the answer is null. */
    public function withRetry(callable $call, callable $enough): mixed
    {
        for ($pause = 50_000; ; $pause = min(2 * $pause, 1_000_000)) {
            try {
                return $call();
            } catch (RedisException $error) {
                if ($enough($error)) {
                    return null;
                }
                $this->log('redis', $error);
                usleep(random_int(intdiv($pause, 2), $pause));
            }
        }
    }

    private function connect(): Redis
    {
        $url = parse_url(str_replace('redis:///', 'redis://127.0.0.1/', $this->url));
        $redis = new Redis();
        $unix = ($url['scheme'] ?? '') === 'unix';
        $host = $unix ? $url['path'] : (($url['scheme'] ?? '') === 'rediss' ? 'tls://' : '') . trim($url['host'] ?? '127.0.0.1', '[]');
        $port = $unix ? -1 : $url['port'] ?? 6379;
        try {
            $redis->connect($host, $port, $this->patience, null, 0, 2 * $this->patience);
        } catch (RedisException $error) {
            throw new RedisException("connecting to $host" . ($unix ? '' : ":$port") . ': ' . $error->getMessage(), 0, $error);
        }
        $redis->setOption(Redis::OPT_MAX_RETRIES, 0); // whoever calls tries again
        if (($url['pass'] ?? '') !== '') {
            $redis->auth(self::login($url['user'] ?? '', $url['pass']));
        }
        parse_str($url['query'] ?? '', $query);
        $database = (int) ($query['db'] ?? ($unix ? 0 : trim($url['path'] ?? '', '/')));
        if ($database > 0) {
            $redis->select($database);
        }
        return $redis;
    }

    /** It begins with a node that knows all slots: phpredis crashes where a raw command is for a slot that it does not know. */
    private function cluster(): RedisCluster
    {
        preg_match('~^redis(s?)-cluster://(?:([^:@/?#]*):([^/?#]+)@)?([^@/?#]+)(?:/0?)?$~D', $this->url, $found)
            || throw new InvalidArgumentException('the address of Redis: expected redis-cluster://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...], and no database');
        [, $tls, $user, $password, $hosts] = $found;
        $login = $password === '' ? null : self::login($user, $password);
        $context = $tls === '' ? null : []; // with any it speaks TLS
        $this->hosts = $this->hosts ?: explode(',', $hosts);
        foreach ($this->hosts as $at => $host) {
            try {
                $ranges = (new self("redis$tls://$user:$password@$host", 0.5))->send('rawCommand', 'CLUSTER', 'SLOTS');
                if (array_sum(array_map(fn (array $range) => $range[1] - $range[0] + 1, $ranges)) === 16384) {
                    $seed = str_replace(['[', ']'], '', preg_match('/:\d+$/D', $host) ? $host : "$host:6379");
                    return new RedisCluster(null, [$seed], 1.5, 3, false, $login, $context); // commands that wait do so for a second
                }
                $error = new RedisException("$host does not know all slots of its cluster");
            } catch (RedisException $error) { // another node may answer
            }
            unset($this->hosts[$at]);
            $this->hosts[] = $host;
            if (clock() > ($this->until ?? INF)) {
                break;
            }
        }
        throw $error;
    }

    /** @return string[] as phpredis wants them: user and password, or the password alone */
    private static function login(string $user, string $password): array
    {
        return array_map(rawurldecode(...), $user === '' ? [$password] : [$user, $password]);
    }

    public function log(string $what, Throwable $error): void
    {
        $this->say("$what: " . $error->getMessage(), 'error');
    }

    /** Tells the logger of the worker. Without one it prints to stderr, or where error_log of php.ini says, which has the time then. */
    public function say(string $text, string $level = 'info'): void
    {
        $text = preg_replace('/(?:[\x00-\x1F\x7F]|\xC2[\x80-\x9F])+/', ' ', $text); // no control characters
        $prints = $this->logger === null;
        try {
            $prints || $this->logger === false || $this->logger->$level($text);
        } catch (Throwable) { // it must not cost the attempt
            $prints = true;
        }
        if ($prints) {
            error_log((ini_get('error_log') ? '' : date('Y-m-d H:i:s ')) . "refreshd: $text");
        }
    }
}

/** Whether nobody has published under a key with this fence or a higher one. Call it first in the transaction that publishes; if not, roll back. */
function wins(\PDO $pdo, string $key, ?int $fence, string $table = 'refreshd_fences'): bool
{
    if ($fence === null) {
        throw new InvalidArgumentException('this attempt has no fence: its entry has none');
    }
    if (!preg_match('/^\w+(\.\w+)?$/D', $table)) {
        throw new InvalidArgumentException("table: expected a name such as refreshd_fences, found $table");
    }
    if ($mysql = $pdo->getAttribute(\PDO::ATTR_DRIVER_NAME) === 'mysql') {
        $pdo->prepare("INSERT INTO $table (name, fence) VALUES (?, 0) ON DUPLICATE KEY UPDATE name = name")->execute([$key]);
    }
    $statement = $pdo->prepare($mysql ? "UPDATE $table SET fence = ? WHERE name = ? AND fence < ?" : "INSERT INTO $table AS t (key, fence)"
        . ' VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE t.fence < excluded.fence');
    if (!$statement->execute($mysql ? [$fence, $key, $fence] : [$key, $fence])) { // with ERRMODE_SILENT
        throw new Exception("$table: " . implode(' ', $statement->errorInfo()));
    }
    return $statement->rowCount() === 1;
}

/**
 * Calls $write($pdo), which must let errors of the database out, in a transaction of its own if it wins, commits, and returns whether it has. What the
 * database ends for the sake of another one is run again, up to 10 times. The connection must be in no transaction.
 */
function publish(\PDO $pdo, string $key, ?int $fence, callable $write, string $table = 'refreshd_fences'): bool
{
    if ($pdo->getAttribute(\PDO::ATTR_ERRMODE) !== \PDO::ERRMODE_EXCEPTION) {
        throw new InvalidArgumentException('pdo: expected ERRMODE_EXCEPTION, found a mode in which an error is not seen');
    }
    for ($left = 9; ; $left--) {
        $pdo->beginTransaction();
        try {
            if ($won = wins($pdo, $key, $fence, $table)) {
                $pdo->exec('SAVEPOINT refreshd'); // it ends with the transaction
                $write($pdo);
                try {
                    $pdo->exec('RELEASE SAVEPOINT refreshd');
                } catch (\PDOException $error) {
                    throw new Exception('write has swallowed an error of the database, or has committed: let errors out: ' . $error->getMessage(), 0, $error);
                }
            }
            $won ? $pdo->commit() : $pdo->rollBack();
            return $won;
        } catch (\Throwable $error) {
            $pdo->inTransaction() && $pdo->rollBack(); // a database may have done so
            if ($left === 0 || !array_intersect(array_slice($error->errorInfo ?? $error->getPrevious()->errorInfo ?? [], 0, 2), ['40001', '40P01', 1020, 1213])) {
                throw $error; // the last two: of MySQL
            }
        }
    }
}

/** Replaces a file as one step, unless somebody has with this fence or a higher one. Needs a file system with locks (flock). */
function publishFile(string $path, string $data, ?int $fence): bool
{
    if ($fence === null) {
        throw new InvalidArgumentException('this attempt has no fence: its entry has none');
    }
    $guard = fopen(dirname($path) . '/.' . basename($path) . '.fence', 'c+');
    if ($guard === false || !flock($guard, LOCK_EX)) {
        throw new Exception("$path: cannot be locked");
    }
    try {
        if ((int) stream_get_contents($guard) >= $fence) {
            return false;
        }
        $written = tempnam(dirname($path), '.' . basename($path) . '.');
        $file = $written === false ? false : fopen($written, 'w');
        if ($file === false || fwrite($file, $data) !== strlen($data) || !fsync($file) || !chmod($written, 0644) || !rename($written, $path)) {
            @unlink((string) $written);
            throw new Exception("$path: cannot be written");
        }
        rewind($guard); // it never becomes shorter, so a crash leaves the old one or the new one
        if (fwrite($guard, "$fence\n") !== strlen("$fence\n")) {
            throw new Exception("$path: its fence cannot be written");
        }
        return true;
    } finally {
        fclose($guard); // and gives the lock back
    }
}

/** @internal Seconds of a clock that nobody sets. */
function clock(): float
{
    return hrtime(true) / 1e9;
}

/** @internal */
function json(array $fields, int $flags = JSON_INVALID_UTF8_SUBSTITUTE): string
{
    return json_encode($fields, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | $flags);
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
