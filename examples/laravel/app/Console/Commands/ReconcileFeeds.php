<?php

namespace App\Console\Commands;

use App\Models\Feed;
use Illuminate\Console\Command;
use Refreshd\Client;

class ReconcileFeeds extends Command
{
    protected $signature = 'feeds:reconcile';
    protected $description = 'Saves the models of all feeds, and removes those without a feed. Schedule it every five minutes.';

    public function handle(Client $refreshd): int
    {
        $known = []; // read before the rows, so that the model of a new row stays
        while ($page = $refreshd->list('kind=feed', after: end($known) ?: '')) {
            array_push($known, ...$page);
        }
        $definitions = Feed::all()->map->definition()->all();
        $replies = $refreshd->putMany($definitions);
        foreach (array_diff($known, array_column($definitions, 'uid')) as $uid) {
            $refreshd->remove($uid);
        }
        $refused = array_filter($replies, fn (array $reply) => $reply['outcome'] === 'refused');
        array_map(fn (array $reply) => $this->error("$reply[uid]: $reply[reason]"), $refused);
        return $refused ? self::FAILURE : self::SUCCESS;
    }
}
