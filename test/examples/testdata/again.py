import json, sys, refreshd
task = json.loads(sys.argv[1])
if task["database"] == "postgres":
    import psycopg
    connection = psycopg.connect(host="127.0.0.1", port=task["port"], user="postgres")
else:
    import pymysql
    connection = pymysql.connect(host="127.0.0.1", port=task["port"], user="root", database="test")
calls = 0


def ask(text, commit=True):
    cursor = connection.cursor()
    cursor.execute(text)
    if commit:
        connection.commit()
    return cursor.fetchone() if cursor.description else None


def publish(fence, error, times):
    global calls
    calls = 0

    def write(connection):
        global calls
        calls += 1
        ask("INSERT INTO published VALUES (%d)" % fence, commit=False)
        if calls <= times:
            ask(error, commit=False)
    try:
        told = str(refreshd.publish(connection, "m1", fence, write)).lower()
    except Exception as caught:
        told = "error"
    print(fence, told, calls)


for text in task["tables"]:
    ask(text)
for number, error in enumerate(task["again"]):
    publish(10 + number, error, 1)
publish(10, "", 0)
publish(20, task["other"], 1)
publish(30, task["again"][0], 99)
publish(20, "", 0)
print(ask("SELECT count(*) FROM published")[0], "rows")
if task["database"] == "postgres":
    ask("SELECT 1", commit=False)  # a transaction is open
else:
    connection.autocommit(True)
publish(40, "", 0)
