<?php

declare(strict_types=1);

// What the pages of an application show: it saves models, lists and reads them, holds some, and accepts a doubted result.

use Refreshd\{Client, Model};

require __DIR__ . '/../src/Refreshd.php';

$show = function (mixed ...$values): void {
    echo json_encode($values, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE), "\n";
};
$shop = new Client(by: 'shop');
$until = function (string $uid, callable $holds) use ($shop): Model { // what a page shows that asks again and again
    while (!$holds($model = $shop->get($uid))) {
        usleep(20_000);
    }
    return $model;
};
$with = fn (string $outcome, array $replies) => count(array_filter($replies, fn (array $reply) => $reply['outcome'] === $outcome));

$guarded = ['timeout' => '1h', 'retries' => ['1h'], 'guard' => [['rows' => ['min' => 1]]], 'on_suspect' => 'hold'];
$models = array_map(fn (int $i) => ['uid' => sprintf('tbl_%02d', $i), 'payload' => ['rows' => $i], 'rrule' => 'every day at 6 AM', 'policy' => $guarded,
    'labels' => ['kind' => 'feed', 'tenant' => 't' . $i % 2]], range(0, 29));
$saved = $shop->putMany([...$models, ['uid' => 'tbl_99', 'timezone' => 'Mars/Base'] + $models[0]]);
$show('saved', $with('applied', $saved), $saved[30]['outcome'], $saved[30]['field']);
$show('saved again', $with('unchanged', $shop->putMany($models)));
$show('tenant t0', ...$shop->list('tenant=t0'));
$show('next page', ...$shop->list('tenant=t1, kind=feed', after: 'tbl_05', limit: 3));
try {
    $shop->list('policy=nightly');
} catch (InvalidArgumentException) {
    $show('no such list');
}
$show('nobody', $shop->get('nobody'), ...$shop->history('nobody'));

$new = $shop->get('tbl_07');
$show('new', $new->uid, $new->state, $new->refreshWhy, (int) $new->refreshAt->format('G'), $new->lastSuccessAt, $new->status, $new->progress, $new->labels['tenant']);
$show('run', $shop->run('tbl_07')['outcome']);
$done = $until('tbl_07', fn (Model $model) => $model->lastSuccessAt);
$show('refreshed', $done->state, $done->status, $done->progress, $done->failingSince, $shop->history('tbl_07', 1)[0]['metrics']);

$shop->run('tbl_20');
$working = $until('tbl_20', fn (Model $model) => $model->status);
$show('working', $working->state, $working->status, ...$shop->list('status=running'));
$show('disable', $shop->disable('tbl_20', 'has not paid')['outcome']);
$stopped = $shop->get('tbl_20');
$show('disabled', $stopped->state, $stopped->refreshAt, $stopped->disabledReason, ...$shop->list('status=disabled'));

$show('hold', $shop->hold('move', 'moves house', selector: 'tenant=t1', for: '2h')['outcome'], $shop->run('tbl_09')['outcome']);
$held = $until('tbl_09', fn (Model $model) => $model->state === 'parked');
$show('held', $held->parkedBy, ...$shop->list('tenant=t1,status=parked'));
$show('release', $shop->release('move')['outcome'], $until('tbl_09', fn (Model $model) => $model->lastSuccessAt)->state);

$shop->run('tbl_13');
$failing = $until('tbl_13', fn (Model $model) => $model->failingSince);
$last = $shop->history('tbl_13')[0];
$show('failing', $failing->state, $last['is'], $last['reason'], $shop->list('status=failing,tenant=t1'), $shop->list('status=failing,tenant=t0'));

$shop->run('tbl_00');
$doubted = $until('tbl_00', fn (Model $model) => $model->parkedBy);
$show('doubted', $doubted->state, $doubted->parkedBy, $shop->history('tbl_00')[0]['suspect']);
$show('accept', $shop->accept('tbl_00')['outcome'], $until('tbl_00', fn (Model $model) => $model->lastSuccessAt)->state);
$show('reject', $shop->reject('tbl_00')['outcome']); // nothing is doubted
