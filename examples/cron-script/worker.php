<?php
require 'vendor/autoload.php';

(new Refreshd\Worker(function (Refreshd\Attempt $attempt): void {
    $table = @file_get_contents($attempt->payload['input_url'])
        ?: throw new Exception(error_get_last()['message'] ?? 'the table is empty');
    file_put_contents("$attempt->uid.csv", $table);
}))->run();
