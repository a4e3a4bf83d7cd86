<?php

namespace App\Observers;

use App\Models\Feed;
use Refreshd\Client;

class FeedObserver
{
    public $afterCommit = true;

    public function __construct(private Client $refreshd) {}

    /** Saves the model. The row is committed: what fails here, feeds:reconcile does later. */
    public function saved(Feed $feed): void
    {
        rescue(function () use ($feed) {
            $row = Feed::find($feed->id)?->definition(); // as it was committed last, perhaps by another request
            $row && $this->refreshd->put($row['uid'], $row['payload'], ['refresh' => 'now'] + $row);
        });
    }

    public function deleted(Feed $feed): void
    {
        rescue(fn () => $this->refreshd->remove($feed->uid()));
    }
}
