<?php

declare(strict_types=1);

// An application: it saves a model, runs it, stops it, and forgets it.

use Refreshd\{Client, Refused};

require __DIR__ . '/../src/Refreshd.php';

function tell(string $what, callable $command): void
{
    try {
        echo "$what: {$command()['outcome']}\n";
    } catch (Refused $refused) {
        echo "$what: refused, $refused->counter\n";
    }
}

$shop = new Client(by: 'shop');
$feed = ['input_url' => 'https://example.com/größe.csv'];
$daily = ['rrule' => 'every day at 6 AM', 'labels' => ['tenant' => 't1']];
tell('put', fn () => $shop->put('tbl_1', $feed, $daily));
tell('put again', fn () => $shop->put('tbl_1', $feed, $daily));
tell('run', fn () => $shop->run('tbl_1'));
tell('disable', fn () => $shop->disable('tbl_1', 'has not paid'));
tell('run it then', fn () => $shop->run('tbl_1'));
tell('enable', fn () => $shop->enable('tbl_1'));
tell('remove', fn () => $shop->remove('tbl_1'));
tell('run it then', fn () => $shop->run('tbl_1'));
tell('put nonsense', fn () => $shop->put('tbl_1', $feed, ['rrule' => 'every blue moon']));
