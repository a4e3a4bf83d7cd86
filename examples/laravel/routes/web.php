<?php

use App\Models\Feed;
use Illuminate\Support\Facades\Route;
use Refreshd\Client;

Route::get('/feeds', fn (Client $refreshd) => view('feeds', ['feeds' => Feed::orderBy('name')->get(), 'refreshd' => $refreshd]));
