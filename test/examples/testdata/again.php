<?php
require getenv('CLIENTS') . '/php/src/Refreshd.php';
$task = json_decode($argv[1]);
$pdo = $task->database === 'mariadb' ? new PDO("mysql:host=127.0.0.1;port=$task->port;dbname=test", 'root') : new PDO("pgsql:host=127.0.0.1;port=$task->port;user=postgres");

/** Lets another transaction hold what the first statements ask for, and wait for what they hold. PDO cannot wait beside. */
function swallow(PDO $pdo): void
{
    global $task;
    $other = $task->held ? new mysqli('127.0.0.1', 'root', '', 'test', (int) (string) $task->port) : null;
    foreach ($task->held as $text) {
        $other->query($text);
    }
    $last = array_pop($task->swallowed);
    array_map($pdo->exec(...), $task->swallowed);
    foreach ($task->waits as $text) {
        $other->query($text, MYSQLI_ASYNC);
    }
    try {
        $pdo->exec($last);
    } catch (PDOException) {
    }
    $other?->close();
}

function tell(PDO $pdo, int $fence, string $error, int $times, bool $swallows = false): void
{
    $calls = 0;
    try {
        $told = json_encode(Refreshd\publish($pdo, 'm1', $fence, function (PDO $pdo) use (&$calls, $fence, $error, $times, $swallows) {
            $calls++;
            $pdo->exec("INSERT INTO published VALUES ($fence)");
            if ($calls <= $times) {
                $pdo->exec($error);
            }
            $swallows && swallow($pdo);
        }));
    } catch (Exception $caught) {
        $told = str_contains($caught->getMessage(), 'swallowed') ? 'swallowed' : 'error';
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
tell($pdo, 35, '', 0, true);
tell($pdo, 35, '', 0);
tell($pdo, 36, 'COMMIT', 1);
echo $pdo->query('SELECT count(*) FROM published')->fetchColumn(), " rows\n";
$pdo->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_SILENT);
tell($pdo, 40, '', 0);
