<?php

// The application around examples/laravel, and what a test does with it: ACTION [ID|NAME] [URL].

use App\Models\Feed;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\DatabaseTransactionsManager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Events\Dispatcher;
use Illuminate\Support\Facades\Facade;
use Illuminate\View\Compilers\BladeCompiler;
use Illuminate\View\Engines\{CompilerEngine, EngineResolver};
use Illuminate\View\{Factory, FileViewFinder};
use Refreshd\Client;
use Symfony\Component\Console\{Input\ArrayInput, Output\ConsoleOutput};

error_reporting(E_ALL & ~E_DEPRECATED); // of the framework
foreach (['Database', 'Events', 'View', 'Console', 'Filesystem'] as $part) {
    require_once "/usr/share/php/Illuminate/$part/autoload.php";
}
require getenv('CLIENTS') . '/php/src/Refreshd.php';
spl_autoload_register(function (string $class): void {
    $file = getenv('RECIPE') . '/' . lcfirst(strtr($class, '\\', '/')) . '.php';
    is_file($file) && require $file;
});

function rescue(callable $do): void
{
    try {
        $do();
    } catch (Throwable $error) {
        fwrite(STDERR, "$error\n");
    }
}

function view(string $name, array $data): Illuminate\Contracts\View\View
{
    return $GLOBALS['app']['view']->make($name, $data);
}

class Application extends Illuminate\Container\Container
{
    public function runningUnitTests(): bool
    {
        return false;
    }
}

$app = new Application();
Application::setInstance($app);
$app['events'] = $events = new Dispatcher($app);
$app['db.transactions'] = new DatabaseTransactionsManager();
$app->bind(Illuminate\Contracts\Events\Dispatcher::class, fn () => $events);
$capsule = new Manager($app);
$capsule->addConnection(['driver' => 'sqlite', 'database' => getenv('DATABASE')]);
$capsule->setEventDispatcher($events);
$capsule->setAsGlobal();
$capsule->bootEloquent();
$files = new Illuminate\Filesystem\Filesystem();
$engines = new EngineResolver();
$engines->register('blade', fn () => new CompilerEngine(new BladeCompiler($files, sys_get_temp_dir()), $files));
$app['view'] = new Factory($engines, new FileViewFinder($files, [getenv('RECIPE') . '/resources/views']), $events);
$app['router'] = new class {
    public function get(string $path, Closure $handler): void
    {
        echo $GLOBALS['app']->call($handler)->render();
    }
};
Facade::setFacadeApplication($app);
$provider = new App\Providers\RefreshdServiceProvider($app);
$provider->register();
$provider->boot();

[, $action, $first, $second] = $argv + [2 => null, 3 => null];
if ($action === 'die') {
    $app->instance(Client::class, new class extends Client {
        public function put(string $uid, array $payload = [], array $definition = [], ?string $commandId = null): ?array
        {
            exit(3);
        }
    });
}
$save = function () use ($first, $second): void {
    echo Feed::create(['name' => $first, 'url' => $second])->id, "\n";
};
match ($action) {
    'create' => [touch(getenv('DATABASE')), Manager::schema()->create('feeds', function ($table) {
        $table->id();
        $table->text('name');
        $table->text('url');
        $table->timestamps();
    })],
    'save', 'die' => Manager::connection()->transaction($save),
    'rollback' => [Manager::connection()->beginTransaction(), $save(), Manager::connection()->rollBack()],
    'reconcile' => (function () use ($app): never {
        $command = new App\Console\Commands\ReconcileFeeds();
        $command->setLaravel($app);
        exit($command->run(new ArrayInput([]), new ConsoleOutput()));
    })(),
    'page' => require getenv('RECIPE') . '/routes/web.php',
    'delete' => Feed::findOrFail($first)->delete(),
    'lose' => Feed::query()->delete(),
};
