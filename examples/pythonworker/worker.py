#!/usr/bin/env python3
"""A refreshd worker with nothing but Python's standard library.

    python3 worker.py HOST PORT [QUEUE]

It needs two lists and JSON: BLPOP attempts from QUEUE-input, RPUSH messages to the list that the attempt names as reply_to, or
to QUEUE-output if it names none. Replace refresh() by your own work; it may be a generator of messages, the last of which tells
how the attempt ended.
"""

import datetime
import json
import random
import socket
import sys
import time
import urllib.request


class Redis:
    """The part of the Redis protocol that a worker needs."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port))
        self.replies = self.socket.makefile("rb")

    def command(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))
        return self.reply()

    def reply(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest


def refresh(attempt, current):
    """Fetches input_url. current() is false as soon as the attempt no longer counts: then it is time to stop, and to tell nothing."""
    yield {"type": "started", "worker": "python"}
    try:
        with urllib.request.urlopen(attempt["input_url"], timeout=30) as feed:
            rows = 0
            for _ in feed:
                rows += 1
                if rows % 1000 == 0 and not current():
                    return
    except OSError as error:
        yield {"type": "failure", "reason": str(error), "user_friendly_reason": "The feed could not be read."}
        return
    yield {"type": "user_friendly_status", "status": "%d rows" % rows, "progress": 100}
    yield {"type": "success"}


def work(redis, queue, refresh):
    """Takes one attempt, if one comes within a second, and sends what refresh() says about it."""
    taken = redis.command("BLPOP", queue + "-input", 1)
    if taken is None:
        return
    attempt = json.loads(taken[1])
    uid, fence = attempt["big_table_uid"], attempt["refresh_attempt_uid"]
    deadline = attempt.get("deadline_at", "").encode()

    def current():
        """The model still runs this attempt, and its deadline, which `started` moves, has not passed; as Redis said last, if it refuses to say."""
        nonlocal deadline
        key = queue + ":model:" + uid
        try:
            if redis.command("HGET", key, "attempt_uid") != fence.encode():
                return False
            deadline = redis.command("HGET", key, "deadline_at")
        except RuntimeError as error:
            print(error, file=sys.stderr)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        return not deadline or now[:23] < deadline.decode()  # in UTC, like 2026-11-21T07:00:00.000Z

    for message in refresh(attempt, current):
        message = {"big_table_uid": uid, "refresh_attempt_uid": fence, **message}
        say(redis, attempt.get("reply_to", queue + "-output"), message, current)


def say(redis, output, message, current):
    """Pushes a message, and again after an error of Redis, which may be over in a moment, for as long as the attempt counts."""
    pause = 0.1
    while True:
        try:
            return redis.command("RPUSH", output, json.dumps(message))
        except RuntimeError as error:
            if str(error).startswith(("NOPERM", "WRONGTYPE")) or not current():
                print("lost: %s: %s" % (message, error), file=sys.stderr)
                return
        time.sleep(random.uniform(pause / 2, pause))
        pause = min(2 * pause, 5)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    redis = Redis(sys.argv[1], int(sys.argv[2]))
    queue = sys.argv[3] if len(sys.argv) == 4 else "bigtables"
    while True:
        try:
            work(redis, queue, refresh)
        except RuntimeError as error:  # what Redis answers instead of an attempt
            print(error, file=sys.stderr)
            time.sleep(1)


if __name__ == "__main__":
    main()
