<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Model;

/** A feed is a row, and a model of refreshd that follows the row after each commit: see FeedObserver. */
class Feed extends Model
{
    protected $fillable = ['name', 'url'];

    public function uid(): string
    {
        return "feed_$this->id";
    }

    public function definition(): array
    {
        return ['uid' => $this->uid(), 'payload' => ['input_url' => $this->url], 'rrule' => 'every day at 6 AM', 'labels' => ['kind' => 'feed']];
    }
}
