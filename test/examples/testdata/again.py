import json, sys, threading, refreshd
task = json.loads(sys.argv[1])


def connect():
    if task["database"] == "postgres":
        import psycopg
        return psycopg.connect(host="127.0.0.1", port=task["port"], user="postgres")
    import pymysql
    return pymysql.connect(host="127.0.0.1", port=task["port"], user="root", database="test")


connection, calls = connect(), 0


def ask(text, commit=True, connection=connection):
    cursor = connection.cursor()
    cursor.execute(text)
    if commit:
        connection.commit()
    return cursor.fetchone() if cursor.description else None


def swallow():
    """Lets another transaction hold what the first statements ask for, and wait for what they hold."""
    other = connect()
    for text in task["held"]:
        ask(text, False, other)
    first, last = task["swallowed"][:-1], task["swallowed"][-1]
    for text in first:
        ask(text, commit=False)
    waiting = threading.Thread(target=lambda: [ask(text, False, other) for text in task["waits"]])
    waiting.start()
    try:
        ask(last, commit=False)
    except Exception:
        pass
    waiting.join()
    other.close()


def publish(fence, error, times, swallows=False):
    global calls
    calls = 0

    def write(connection):
        global calls
        calls += 1
        ask("INSERT INTO published VALUES (%d)" % fence, commit=False)
        if calls <= times:
            ask(error, commit=False)
        if swallows:
            swallow()
    try:
        told = str(refreshd.publish(connection, "m1", fence, write)).lower()
    except Exception as caught:
        told = "swallowed" if "swallowed" in str(caught) else "error"
    print(fence, told, calls)


for text in task["tables"]:
    ask(text)
for number, error in enumerate(task["again"]):
    publish(10 + number, error, 1)
publish(10, "", 0)
publish(20, task["other"], 1)
publish(30, task["again"][0], 99)
publish(20, "", 0)
publish(35, "", 0, True)
publish(35, "", 0)
publish(36, "COMMIT", 1)
print(ask("SELECT count(*) FROM published")[0], "rows")
if task["database"] == "postgres":
    ask("SELECT 1", commit=False)  # a transaction is open
else:
    connection.autocommit(True)
publish(40, "", 0)
