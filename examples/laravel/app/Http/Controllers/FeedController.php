<?php

namespace App\Http\Controllers;

use App\Models\Feed;
use Illuminate\Contracts\View\View;
use Refreshd\Client;

class FeedController
{
    public function index(Client $refreshd): View
    {
        return view('feeds', ['feeds' => Feed::orderBy('name')->get(), 'refreshd' => $refreshd]);
    }
}
