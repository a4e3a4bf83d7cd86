"""Lets two attempts of a model publish at a time, many times: by the statements of docs/publish.md, or by the client. argv[1] is a JSON object: database,
port, levels, rounds, client (whether it publishes), win and publish (the statements), again (what is run again). Half of them read before they win. It prints one JSON object a level."""
import json
import random
import sys
import threading

import refreshd

task = json.loads(sys.argv[1])
MODEL, FENCE, OLD, LOW, HIGH = "tbl_1", "1795240800412", 10, 1000, 2000


class Postgres:
    @staticmethod
    def connect(level="READ COMMITTED", autocommit=True):
        import psycopg
        connection = psycopg.connect(host="127.0.0.1", port=task["port"], user="postgres", autocommit=True)
        connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + level)
        connection.autocommit = autocommit
        return connection

    key = "text"

    @staticmethod
    def waits(connection):
        return ask("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", connection.info.backend_pid)

    code = staticmethod(lambda error: getattr(error, "sqlstate", None))


class MariaDB:
    @staticmethod
    def connect(level="READ COMMITTED", autocommit=True):
        import pymysql
        found = random.choice((0, pymysql.constants.CLIENT.FOUND_ROWS))  # how drivers count
        connection = pymysql.connect(host="127.0.0.1", port=task["port"], user="root", database="test", autocommit=autocommit, client_flag=found)
        connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL " + level)
        return connection

    key = "varbinary(200)"

    @staticmethod
    def waits(connection):
        # Not from information_schema: MariaDB 11.8.9 now and then ends with signal 11 as it drops the temporary table of such a query.
        cursor = watcher.cursor()
        cursor.execute("SHOW FULL PROCESSLIST")
        return any(id == connection.thread_id() and command == "Query" and (text or "").startswith("INSERT INTO refreshd_fences")
                   for id, _, _, _, command, _, _, text, *_ in cursor.fetchall())

    code = staticmethod(lambda error: str(error.args[0]))


database = {"postgres": Postgres, "mariadb": MariaDB}[task["database"]]
watcher = database.connect()
aborted = []


def ask(text, *values):
    cursor = watcher.cursor()
    cursor.execute(text, values)
    return cursor.fetchone()[0]


def by_page(connection, key, fence, won):
    cursor = connection.cursor()
    run = lambda text: cursor.execute(text.replace(MODEL, key).replace(FENCE, str(fence)))
    while True:
        try:
            run(task["win"][0])
            if key.endswith("_"):  # so that their view of the database is older than the fence of the other one
                run("SELECT count(*) FROM products WHERE feed = 'tbl_1'")
            for text in task["win"][1:]:
                run(text)
            if cursor.rowcount != 1:
                run("ROLLBACK")
                return False
            won()
            for text in task["publish"]:
                run(text)
            return True
        except Exception as error:
            run("ROLLBACK")
            if database.code(error) not in task["again"]:
                raise
            aborted.append(database.code(error))


def by_client(connection, key, fence, won):
    def write(connection):
        won()
        for text in task["publish"][:-1]:  # but for COMMIT
            connection.cursor().execute(text.replace(MODEL, key).replace(FENCE, str(fence)))
    return refreshd.publish(connection, key, fence, write)


attempt = by_client if task["client"] else by_page


def race(level, key, connections):
    """Returns what is wrong when the first attempt has won and then waits for the second to wait for it."""
    fences, told = random.sample((LOW, HIGH), 2), [None, None]

    def run(which, won):
        try:
            told[which] = attempt(connections[which], key, fences[which], won)
        except Exception as error:
            told[which] = repr(error)

    second = threading.Thread(target=run, args=(1, lambda: None))

    def won():
        if second.ident is None:
            second.start()
            while second.is_alive() and not database.waits(connections[1]):
                pass

    run(0, won)
    if second.ident is None:
        return "%s: the first one was told %s" % (key, told[0])
    second.join()
    stands = [ask("SELECT max(fence) FROM %s WHERE %s = '%s'" % (table, name, key)) for table, name in (("refreshd_fences", task["key"]), ("products", "feed"))]
    rows = ask("SELECT count(*) FROM products WHERE feed = %s", key)
    want = [True, fences[0] < fences[1]]
    if stands != [HIGH, HIGH] or rows != 1 or told != want:
        return "%s: %s are told %s, and %s of %d rows stands" % (key, fences, told, stands, rows)


def key_of(level, n):
    return "tbl_%d_%03d%s" % (level, n, "_" * (n // 2 % 2))


def prepare():
    cursor = watcher.cursor()
    for table in ("refreshd_fences", "products", "products_%d" % LOW, "products_%d" % HIGH):
        cursor.execute("DROP TABLE IF EXISTS " + table)
    cursor.execute(task["table"])
    keys = [key_of(level, n) for level in range(len(task["levels"])) for n in range(task["rounds"])]
    for table in ("products", "products_%d" % LOW, "products_%d" % HIGH):
        cursor.execute("CREATE TABLE %s (feed %s NOT NULL, fence bigint NOT NULL)" % (table, database.key))
        cursor.execute("CREATE INDEX %s_feed ON %s (feed)" % (table, table))
    for fence in (LOW, HIGH):
        cursor.executemany("INSERT INTO products_%d VALUES (%%s, %%s)" % fence, [(key, fence) for key in keys])
    for key in keys[::2]:  # the others have never been published
        cursor.execute("INSERT INTO refreshd_fences (%s, fence) VALUES ('%s', %d)" % (task["key"], key, OLD))
        cursor.execute("INSERT INTO products VALUES (%s, %s)", (key, OLD))


prepare()
for number, level in enumerate(task["levels"]):
    aborted.clear()
    connections = [database.connect(level, autocommit=not task["client"]) for _ in range(2)]
    wrong = [problem for n in range(task["rounds"]) for problem in [race(level, key_of(number, n), connections)] if problem]
    print(json.dumps({"level": level, "wrong": wrong, "aborted": len(aborted)}))
