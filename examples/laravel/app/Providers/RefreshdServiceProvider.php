<?php

namespace App\Providers;

use App\Models\Feed;
use App\Observers\FeedObserver;
use Illuminate\Support\ServiceProvider;
use Refreshd\Client;

class RefreshdServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->singleton(Client::class, fn () => new Client(by: 'laravel', timeout: 2));
    }

    public function boot(): void
    {
        Feed::observe(FeedObserver::class);
    }
}
