<?php

declare(strict_types=1);

// The worker that `refreshd conformance` asks for: its payload says how the attempt ends. See clients/README.md of refreshd.
//
//     refreshd conformance -- php examples/conformance.php

use Refreshd\{Attempt, Failure, Postpone, Worker};

require __DIR__ . '/../src/Refreshd.php';

function refresh(Attempt $attempt): void
{
    $todo = $attempt->payload;
    if (isset($todo['status'])) {
        $attempt->status($todo['status'], $todo['progress'] ?? null);
    }
    $attempt->sleep(($todo['after_ms'] ?? 0) / 1000);
    if ($todo['do'] === 'fail') {
        throw new Failure($todo['reason'], $todo['error_type'] ?? null, $todo['retryable'] ?? null,
            userFriendlyReason: $todo['user_friendly_reason'] ?? null);
    }
    if ($todo['do'] === 'postpone') {
        throw new Postpone($todo['seconds']);
    }
    while ($todo['do'] === 'hang') {
        sleep(3600);
    }
    if ($todo['do'] === 'digest') {
        $attempt->status(hash('sha256', $todo['text']));
    }
}

(new Worker(refresh(...), fenceEvery: 0.1, grace: 0.3, signsEvery: 1))->run();
