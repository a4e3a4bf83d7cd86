"""Reads feeds, RSS or Atom, into SQLite. It downloads a feed only when it has changed."""

import contextlib
import os
import sqlite3
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml

import refreshd

SCHEMA = """
CREATE TABLE IF NOT EXISTS feeds (uid PRIMARY KEY, url, etag, modified);
CREATE TABLE IF NOT EXISTS items (feed, id, title, link, PRIMARY KEY (feed, id));
"""
MAX_BYTES = 10_000_000
GONE = "The feed is gone for good: its server answers HTTP 410. Save its new address, or remove it."


def refresh(attempt):
    url = attempt.payload["input_url"]
    with contextlib.closing(sqlite3.connect(os.environ["DATABASE"])) as database:
        known = database.execute("SELECT etag, modified FROM feeds WHERE uid = ? AND url = ?", (attempt.uid, url)).fetchone()
        answer = fetch(url, *known or (None, None))
        if answer is None:
            attempt.status("nothing new")
            return attempt.unchanged()
        body, headers = answer
        items = parse(body)
        attempt.check()  # from here on nothing stops it
        with database:  # the items and the ETag in one transaction
            database.execute("REPLACE INTO feeds VALUES (?, ?, ?, ?)", (attempt.uid, url, headers["ETag"], headers["Last-Modified"]))
            database.executemany("REPLACE INTO items VALUES (?, ?, ?, ?)", [(attempt.uid, *item) for item in items])
    attempt.status("%d items" % len(items), 100)


def fetch(url, etag, modified):
    """The body and the headers; None if the feed has not changed."""
    if not url.startswith(("http://", "https://")):  # urllib opens files, too
        raise refreshd.Failure("expected an http address, found " + url, retryable=False, user_friendly_reason="This is no address of a feed.")
    request = urllib.request.Request(url, headers={"User-Agent": "feed-reader/1"})
    for name, value in (("If-None-Match", etag), ("If-Modified-Since", modified)):
        if value:
            request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            body = response.read(MAX_BYTES)
            if response.read(1) or response.length:
                raise refreshd.Failure("the feed was cut off, or has more than %d bytes" % MAX_BYTES, error_type="truncated")
            return body, response.headers
    except urllib.error.HTTPError as error:
        if error.code == 304:
            return None
        raise refreshd.Failure("HTTP %d" % error.code, error_type="http_%d" % error.code, retry_after=error.headers["Retry-After"],
                               retryable=False if error.code == 410 else None, user_friendly_reason=GONE if error.code == 410 else None)
    except OSError as error:
        raise refreshd.Failure(str(error), error_type="network")


def parse(body):
    """The id, the title and the link of each item. {*} is any namespace: Atom has one, RSS has none."""
    try:
        root = xml.fromstring(body)
    except xml.ParseError as error:
        raise refreshd.Failure(str(error), error_type="no_feed")
    items = []
    for item in root.findall(".//{*}item") + root.findall(".//{*}entry"):
        title, link = item.findtext("{*}title"), item.find("{*}link")
        link = None if link is None else link.get("href") or link.text
        items.append((item.findtext("{*}guid") or item.findtext("{*}id") or link or title, title, link))
    return items


if __name__ == "__main__":
    with sqlite3.connect(os.environ["DATABASE"]) as database:
        database.executescript(SCHEMA)
    refreshd.Worker(refresh, concurrency=8).run()
