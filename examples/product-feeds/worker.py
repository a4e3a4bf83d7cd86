"""Loads product feeds (CSV) into Postgres: the whole feed, or nothing of it."""

import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request

import psycopg

import refreshd

STAGING = """
CREATE TEMPORARY TABLE staging (
    sku text PRIMARY KEY, name text NOT NULL, price numeric NOT NULL CHECK (price >= 0)
) ON COMMIT DROP
"""
COPY = "COPY staging (sku, name, price) FROM STDIN WITH (FORMAT csv, HEADER match)"


def refresh(attempt):
    with tempfile.TemporaryFile() as file:
        download(attempt.payload["input_url"], file)
        with psycopg.connect(os.environ["DATABASE_URL"]) as database:  # one transaction; an exception rolls it back
            database.execute(STAGING)
            rows = load(attempt, database, file)
            attempt.check()  # raises if the attempt no longer counts
            if not refreshd.wins(database, attempt.uid, attempt.fence):  # while this one was frozen, a later one has published
                return
            database.execute("DELETE FROM products WHERE feed = %s", (attempt.uid,))
            database.execute("INSERT INTO products SELECT %s, sku, name, price FROM staging", (attempt.uid,))
    attempt.status("%d products" % rows, 100)


def download(url, file):
    if not url.startswith(("http://", "https://")):  # urllib opens files, too
        raise refreshd.Failure("expected an http address, found " + url, retryable=False, user_friendly_reason="This is no address of a feed.")
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            shutil.copyfileobj(response, file)
            if response.length:
                raise refreshd.Failure("%d bytes are missing" % response.length, error_type="truncated")
    except urllib.error.HTTPError as error:
        raise refreshd.Failure("HTTP %d" % error.code, error_type="http_%d" % error.code, retry_after=error.headers["Retry-After"])
    except OSError as error:
        raise refreshd.Failure(str(error), error_type="network")
    file.seek(0)


def load(attempt, database, file):
    """Copies the file into the staging table, and returns the number of rows."""
    cursor = database.cursor()
    try:
        with cursor.copy(COPY) as copy:
            while chunk := file.read(1 << 20):
                attempt.check()
                copy.write(chunk)
    except (psycopg.DataError, psycopg.IntegrityError) as error:  # Postgres says where: COPY staging, line 3, column price: "cheap"
        where = re.search(r"line \d+(, column \w+)?", error.diag.context or "")
        broken(attempt, "%s: %s" % (where.group() if where else "feed", error.diag.message_primary))
    if cursor.rowcount == 0:
        broken(attempt, "line 2: expected a product, found none")
    return cursor.rowcount


def broken(attempt, reason):
    told = "The feed was not loaded, the old products stay. " + reason[0].upper() + reason[1:]
    attempt.status(told)  # the owner reads it at once, and user_friendly_reason if the model is given up
    raise refreshd.Failure(reason, error_type="broken_row", user_friendly_reason=told)


if __name__ == "__main__":
    refreshd.Worker(refresh, concurrency=4).run()
