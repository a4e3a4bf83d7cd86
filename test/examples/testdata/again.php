<?php
require getenv('CLIENTS') . '/php/src/Refreshd.php';
$task = json_decode($argv[1]);
$pdo = $task->database === 'mariadb' ? new PDO("mysql:host=127.0.0.1;port=$task->port;dbname=test", 'root') : new PDO("pgsql:host=127.0.0.1;port=$task->port;user=postgres");

function tell(PDO $pdo, int $fence, string $error, int $times): void
{
    $calls = 0;
    try {
        $told = json_encode(Refreshd\publish($pdo, 'm1', $fence, function (PDO $pdo) use (&$calls, $fence, $error, $times) {
            $calls++;
            $pdo->exec("INSERT INTO published VALUES ($fence)");
            if ($calls <= $times) {
                $pdo->exec($error);
            }
        }));
    } catch (Exception) {
        $told = 'error';
    }
    echo "$fence $told $calls\n";
}

foreach ($task->tables as $text) {
    $pdo->exec($text);
}
foreach ($task->again as $number => $error) {
    tell($pdo, 10 + $number, $error, 1);
}
tell($pdo, 10, '', 0);
tell($pdo, 20, $task->other, 1);
tell($pdo, 30, $task->again[0], 99);
tell($pdo, 20, '', 0);
echo $pdo->query('SELECT count(*) FROM published')->fetchColumn(), " rows\n";
$pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_SILENT);
tell($pdo, 40, '', 0);
