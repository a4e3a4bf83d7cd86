<?php

declare(strict_types=1);

// Tests of Testing, and examples of its use: php clients/php/test/testing.php

use Refreshd\{Attempt, Failure, Postpone, Stopped, Testing};

require __DIR__ . '/../src/Refreshd.php';

/** What attempts have told, without their uids. */
function told(callable $refresh, array ...$attempts): array
{
    $without = fn (array $message) => array_diff_key($message, ['uid' => 0, 'refresh_attempt_uid' => 0]);
    return array_map(fn (array $messages) => array_map($without, $messages), Testing::run($refresh, $attempts ?: [[]]));
}

function failing(Throwable $error): callable
{
    return fn () => throw $error;
}

function thrown(callable $call): ?Throwable
{
    try {
        $call();
    } catch (Throwable $error) {
        return $error;
    }
    return null;
}

$failed = 0;
$expect = function (string $what, mixed $want, mixed $found) use (&$failed): void {
    if ($found != $want || json_encode($found) !== json_encode($want)) {
        printf("%s: expected %s, found %s\n", $what, json_encode($want), json_encode($found));
        $failed++;
    }
};

$expect('a success comes behind each status with what the handler said', [[
    ['type' => 'user_friendly_status', 'status' => 'part 1', 'progress' => 50],
    ['type' => 'user_friendly_status', 'status' => 'part 2', 'progress' => 100],
    ['type' => 'success', 'changed' => false, 'metrics' => ['rows' => 3], 'log' => '2 parts'],
]], told(function (Attempt $attempt): void {
    foreach ([1, 2] as $part) {
        $attempt->status("part $part", 50 * $part);
    }
    $attempt->metric('rows', 3);
    $attempt->unchanged();
    $attempt->log('2 parts');
}));

$expect('messages name the model and its attempt', [[['type' => 'success', 'uid' => 'tbl_1', 'refresh_attempt_uid' => 'attempt']]],
    Testing::run(fn () => null, [Testing::attempt(uid: 'tbl_1')]));

$urls = [];
told(function (Attempt $attempt) use (&$urls): void {
    $urls[] = $attempt->payload['input_url'];
}, ['input_url' => 'a'], ['input_url' => 'b']);
$expect('each attempt has its own payload', ['a', 'b'], $urls);

$expect('a failure has the fields of the handler',
    [[['type' => 'failure', 'reason' => 'gone', 'error_type' => 'http_404', 'retryable' => false, 'user_friendly_reason' => 'The feed is gone']]],
    told(failing(new Failure('gone', 'http_404', false, userFriendlyReason: 'The feed is gone'))));

foreach ([['RuntimeException: 404', new RuntimeException('404')], ['LogicException', new LogicException()],
    ['expected a text', new TypeError('expected a text')], ["'größe'", new RuntimeException("'größe'")]] as [$reason, $error]) {
    $expect('what is thrown without words is told with its class', $reason, told(failing($error))[0][0]['reason']);
}

$expect('a postponed attempt', [[['type' => 'postponed', 'retry_after' => 60]]], told(failing(new Postpone(60))));

$unset = (new ReflectionClass(Failure::class))->newInstanceWithoutConstructor(); // of a class that does not call its parent
foreach ([[new Postpone(INF), 'JsonException'], [new Failure('gone', retryAfter: NAN), 'JsonException'], [$unset, 'Error']] as [$error, $class]) {
    $message = told(failing($error))[0][0];
    $expect('what cannot be told is a failure of its class', ['failure', $class], [$message['type'], $message['error_type']]);
}

$message = told(function (Attempt $attempt): iterable {
    yield $attempt;
})[0][0];
$expect('a generator does no work and fails', ['failure', 'LogicException'], [$message['type'], $message['error_type'] ?? null]);

foreach ([[], ['maybe'], [['reason' => 'no rows']]] as $verdicts) {
    $expect('verdicts that no poller gives are refused', InvalidArgumentException::class, get_debug_type(thrown(fn () => Testing::attempt(verdicts: $verdicts))));
}

$attempt = Testing::attempt();
$attempt->sleep(3600);
$attempt->sleep(1);
$expect('sleep takes no time', 3601.0, $attempt->slept);

$attempt = Testing::attempt(['fence' => 'of the payload'],
    more: ['attempt_no' => 3, 'fence' => 7, 'deadline_at' => '2026-11-21T07:00:00.000Z', 'deaths' => 2]);
$expect('an attempt has the fields of its entry', [3, 7, '07', 2, ['fence' => 'of the payload']],
    [$attempt->attemptNo, $attempt->fence, $attempt->deadline->format('H'), $attempt->deaths, $attempt->payload]);

$attempt = Testing::attempt(verdicts: ['publish', ['verdict' => 'hold', 'reason' => 'no rows']]);
$expect('verdicts come in their order, and the last one again', [true, false, false, 'no rows', [['rows' => 3], ['rows' => 0], ['rows' => 0]]],
    [...array_map(fn (int $rows) => $attempt->ready(['rows' => $rows]), [3, 0, 0]), $attempt->doubt, array_column($attempt->told, 'metrics')]);

$doubted = Testing::run(fn (Attempt $attempt) => $attempt->ready(['rows' => 0]), [Testing::attempt(verdicts: ['hold'])]);
$expect('what a guard doubts is not published', false, end($doubted[0])['published']);

$stale = Testing::run(fn (Attempt $attempt) => $attempt->ready(), [Testing::attempt(verdicts: ['stale'])]);
$expect('a stale verdict ends the work without a message', ['ready'], array_column($stale[0], 'type'));

foreach ([['deadline', []], ['shutdown', [['type' => 'interrupted']]]] as [$why, $want]) {
    $expect("an attempt that is stopped in the middle of its work ($why)", [$want], told(function (Attempt $attempt) use ($why): void {
        Testing::stop($attempt, $why);
        $attempt->status('never told');
        $attempt->check();
        exit('the work went on');
    }));
}

$expect('a success counts also at a shutdown', [[['type' => 'success']]], told(fn (Attempt $attempt) => Testing::stop($attempt, 'shutdown')));

$attempt = Testing::attempt();
Testing::stop($attempt, 'fence_lost');
$expect('check throws Stopped', Stopped::class, get_class(thrown(fn () => $attempt->check())));
$expect('sleep throws Stopped', Stopped::class, get_class(thrown(fn () => $attempt->sleep(1))));

$refused = thrown(fn () => Testing::stop(Testing::attempt(), 'late'));
$expect('a wrong reason is refused', true, $refused !== null && preg_match('/expected one of .*deadline.*, found late/', $refused->getMessage()) === 1);

exit($failed === 0 ? 0 : 1);
