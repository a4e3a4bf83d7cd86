import json, sys, refreshd
task = json.loads(sys.argv[1])


def connect():
    if task["database"] == "postgres":
        import psycopg
        return psycopg.connect(host="127.0.0.1", port=task["port"], user="postgres")
    import pymysql
    return pymysql.connect(host="127.0.0.1", port=task["port"], user="root", database="test", charset="utf8mb4")


def run(connection, text):
    cursor = connection.cursor()
    cursor.execute(text)
    return cursor


def told(do):
    try:
        return do()
    except Exception as error:
        return getattr(error, "sqlstate", None) or error.args[0]


frozen, later = connect(), connect()
run(frozen, task["table"])
frozen.commit()
for one, other in (("tbl_A", "tbl_a"), ("a", "a "), ("e", "é"), ("ss", "ß")):
    print(refreshd.wins(frozen, one, 5), refreshd.wins(frozen, other, 5), refreshd.wins(frozen, one, 5), refreshd.wins(frozen, other, 6))
frozen.commit()

refreshd.wins(frozen, "m1", 5)
run(later, task["bounded"])
later.commit()
print(told(lambda: refreshd.publish(later, "m1", 6, lambda connection: None)))
frozen.rollback()

later = connect()
run(frozen, task["ended"])
frozen.commit()
refreshd.wins(frozen, "m1", 7)
print(refreshd.publish(later, "m1", 8, lambda connection: None))  # it waits until the server has ended the frozen one
told(lambda: run(frozen, "SELECT 1"))
told(frozen.commit)
print(told(lambda: run(frozen, "SELECT 1")) != 1, refreshd.wins(later, "m1", 8), refreshd.wins(later, "m1", 9))
