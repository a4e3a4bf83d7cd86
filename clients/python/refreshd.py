"""refreshd for Python: workers that refresh models, and applications that save them. README.md beside it has examples, docs/wire.md the wire format."""

import asyncio
import collections
import concurrent.futures
import datetime
import functools
import inspect
import json
import logging
import math
import os
import queue
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
import zlib

try:
    import redis
    import redis.backoff  # redis-py 3 has none
    import redis.retry
except ImportError:
    raise ImportError("refreshd: expected redis-py 4 or newer (pip install 'redis>=4'), found %s"
                      % getattr(sys.modules.get("redis"), "__version__", sys.modules.get("redis"))) from None

__version__ = "0.9.0"
__all__ = ["AsyncClient", "Attempt", "Client", "Failure", "Model", "NoReply", "Postpone", "Refused", "Stopped", "Worker", "publish", "publish_file",
           "testing", "wins"]

log = logging.getLogger("refreshd")


def _plain(record):
    """Keeps the control characters of users out of logs."""
    if record.exc_info:
        record.exc_text = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]+", " ", logging.Formatter().formatException(record.exc_info))
    record.args = tuple(one if isinstance(one, (int, float)) else re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", str(one)) for one in record.args)
    return True


log.addFilter(_plain)


class Failure(Exception):
    """Raised by a handler: the refresh has failed. Any other exception is a failure too, of the error type that its class is called."""

    def __init__(self, reason, *, error_type=None, retryable=None, retry_after=None, user_friendly_reason=None):
        super().__init__(reason)
        if isinstance(retry_after, datetime.datetime):
            retry_after = retry_after.isoformat()
        retry_after = _seconds(retry_after)
        text = _reason(reason) if isinstance(reason, BaseException) else str(reason)
        fields = {"reason": text, "error_type": error_type, "retryable": retryable,
                  "retry_after": retry_after, "user_friendly_reason": user_friendly_reason}
        self.fields = {name: value for name, value in fields.items() if value is not None}


class Postpone(Exception):
    """Raised by a handler: it cannot be done now. Tried again after so many seconds, or a timedelta; not counted as an attempt."""

    def __init__(self, seconds):
        self.seconds = _seconds(seconds)
        super().__init__("postponed for %s s" % self.seconds)


class Stopped(Exception):
    """The work no longer counts: "fence_lost", "requeued" (others have it, as the worker was silent), "deadline" or "shutdown". Let it pass."""


_UNHEARD = ("fence_lost", "requeued", "deadline")  # no message about the attempt is sent: it would be stale


class Attempt:
    """One attempt to refresh a model. All of it may be used from any thread."""

    _status_every = 0.25

    def __init__(self, entry, list_name, names):
        self.uid, self.attempt_uid = entry[names.model], entry[names.attempt]
        if not (isinstance(self.uid, str) and isinstance(self.attempt_uid, str) and self.uid and self.attempt_uid):
            raise ValueError("an entry without uids")
        self.attempt_no = entry.get("attempt_no", 0)
        self.deadline = _time(entry.get("deadline_at"))  # moves when the work begins; None: there is none
        self.planned_at = _time(entry.get("planned_at"))
        self.traceparent = entry.get("traceparent")  # of W3C Trace Context; None: the attempt is not traced
        ours = (names.model, names.attempt, "attempt_no", "deadline_at", "planned_at", "reply_to", "traceparent")
        fence, due_at, purpose = (entry.get(name) for name in ("fence", "due_at", "for"))
        if isinstance(fence, int) and isinstance(due_at, str) and isinstance(purpose, str):  # otherwise they are of an older payload
            ours += ("fence", "due_at", "for")
            self.fence, self.due_at, self.purpose = fence, _time(due_at), purpose
        else:
            self.fence = self.due_at = self.purpose = None
        self.deaths = 0  # so many workers have died over it
        if type(entry.get("deaths")) is int and (self.fence or not self.attempt_no):
            self.deaths, ours = entry["deaths"], ours + ("deaths",)
        self.payload = entry.get("payload", {}) if names.nested else {k: v for k, v in entry.items() if k not in ours}
        self.stopped = threading.Event()  # set as soon as the work no longer counts
        self.why = None  # it was stopped: see Stopped
        self.changed = True
        self.log_url = None  # the place of a log of the attempt: an http or https URL
        self.verdict = self.doubt = None  # the last verdict given to ready(), and the reason
        self._metrics, self._log = {}, None
        self._begun, self._taken_at = False, time.monotonic()
        self._place = None  # where its entry is; None: it was popped
        self._queue = list_name[:-len("-input")]
        self._reply_to = entry.get("reply_to", self._queue + "-output")
        self._answered = threading.Lock()
        self._status, self._sent_at = None, self._taken_at - self._status_every  # so that the first is sent immediately
        self._lives, self._signs_every = False, None  # the handler has shown life since the last message; None: no signs are announced
        self._send = self._ask = _no_worker

    def check(self):
        """Raises Stopped once the work no longer counts. Call it between two steps of the work. It is a sign of life, as alive() is."""
        if self.stopped.is_set():
            raise Stopped(self.why)
        self.alive()

    def sleep(self, seconds):
        """Sleeps, and raises Stopped as soon as the work no longer counts. It gives signs of life."""
        end = time.monotonic() + seconds
        while True:
            self.check()
            left = end - time.monotonic()
            if left <= 0:
                return
            self.stopped.wait(min(left, self._signs_every or left))

    def alive(self):
        """Says that the work gets on, at most once in signs_every seconds. Call it where something is done, not by a timer: work that hangs is no life."""
        self._lives = self._signs_every is not None
        self._flush()

    def status(self, text, progress=None):
        """Shows the owner the progress of the work; progress is 0 to 100. Call it as often as you like: it sends four a second, and the last."""
        self._status = {"status": str(text)} if progress is None else {"status": str(text), "progress": progress}
        self._flush()

    def unchanged(self):
        """Makes the success that follows say that the refresh found nothing new."""
        self.changed = False

    def metric(self, name, number):
        """Gives the success a number, such as its rows, by which a policy may doubt it: at most 16, with names of 1 to 40 small letters, digits or _."""
        number = number if isinstance(number, int) else float(number)
        if math.isfinite(number):
            self._metrics[str(name)] = number

    def ready(self, metrics=None, timeout=60.0):
        """Asks whether you may publish a result with these numbers and those of metric(). If not, a guard of the policy doubts it: return then.
        verdict is "hold" or "fail", doubt the reason. Raises Stopped, and Failure if no verdict comes within so many seconds."""
        for name, number in (metrics or {}).items():
            self.metric(name, number)
        said = self._ask(self, timeout)
        self.verdict, self.doubt = said.get("verdict"), said.get("reason")
        if self.verdict == "stale":
            self._stop("fence_lost")
        self.check()
        return self.verdict == "publish"

    def log(self, text):
        """Hands over the output of the attempt: the last 64 KiB of the last one are kept. Mind secrets: not all of them are masked."""
        self._log = str(text).encode(errors="replace")[-65536:].decode(errors="ignore")

    def _flush(self, last=False):
        """Sends the status, or a message without one as a sign of life; sends nothing if it has sent something a moment ago."""
        if self._answered.locked() and not last:
            return  # it would be stale
        status, since = self._status, time.monotonic() - self._sent_at
        if status is None and (last or not self._lives or since < self._signs_every) or status is not None and not last and since < self._status_every:
            return
        self._status, self._lives, self._sent_at = None, False, time.monotonic()
        if not self.stopped.is_set():
            self._send(self, "user_friendly_status", **(status or {}))

    def _ending(self):
        """What each message that ends the attempt has beside its own fields."""
        return {name: str(text) for name, text in (("log", self._log), ("log_url", self.log_url)) if text}

    def _over(self):
        """Whether all its messages are stale, as Redis said last. What was done in time counts however late: an outage is nobody's timeout. Where nobody
        lets it begin it is over a minute after its deadline was heard of."""
        passed = self.deadline is not None and datetime.datetime.now(datetime.timezone.utc) >= self.deadline
        return self.why in _UNHEARD or passed and not self._begun and time.monotonic() >= self._taken_at + 60

    def _stop(self, why):
        if not self.stopped.is_set():
            self.why = why
            self.stopped.set()


def _no_worker(*_, **__):
    raise RuntimeError("no worker has this attempt: in a test make it by refreshd.testing.attempt(), which needs no Redis")


class Worker:
    """Takes attempts and calls refresh(attempt) for each, up to concurrency of them at a time, each in a thread. What it returns is ignored. An `async def`
    runs in an event loop of its own, and must call check() like any other. grace: seconds that the work in hand may go on after SIGTERM; then it is
    handed back. fence_every: seconds between its comparisons with Redis. redis: a URL or a redis.Redis. plain: it pops entries and gives no
    heartbeats. signs_every announces signs of life, at most one in so many seconds: choose the duration of the longest step of the work.
    """

    def __init__(self, refresh, *, redis=None, queue=None, concurrency=4, name=None, fence_every=1.0, grace=10.0, plain=False, signs_every=None):
        self.refresh, self.concurrency, self.grace, self.fence_every, self.plain = refresh, concurrency, grace, fence_every, plain
        self.signs_every = signs_every
        self.name = name or socket.gethostname()
        self._redis, self._queue = _connect(redis, 3), _queue(queue)
        self._stop, self._gone, self._stopped_at = threading.Event(), threading.Event(), None
        self._slots = threading.Semaphore(concurrency)
        self._in_hand = {}  # its id: attempt
        self._parts, self._empty = collections.deque(), 0  # of the queue; how many in a row had nothing to take

    def run(self):
        """Works until stop() is called or, in the main thread, until SIGTERM or SIGINT. Where the program has no handler of logs, it prints what it logs."""
        if not log.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(asctime)s refreshd: %(message)s"))
            log.addHandler(handler)
            log.setLevel(log.level or logging.INFO)
        if threading.current_thread() is not threading.main_thread():
            return self._run()
        signals = queue.SimpleQueue()  # stop() in the handler of a signal would wait for a lock that the main thread may hold just then
        _start(lambda: (signals.get(), self.stop()))
        before = {number: signal.signal(number, lambda *_: signals.put(None)) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)  # None: it is not of Python
            signals.put(None)

    def _run(self):
        names = self._with_retry(lambda: _Names(self._redis, self._queue))
        if names is None:
            return
        log.info("working for the queue %s, %d at a time", self._queue, self.concurrency)
        owner = _owner()
        self._parts.extend(_Taken(self._redis, part, owner) for part in names.parts)
        parts = list(self._parts)
        groups = [[part] for part in parts] if isinstance(self._redis, _Cluster) else [parts]  # a silent node holds up no other
        loops = [_start(loop, group) for group in groups for loop in ([self._watch] if self.plain else [self._watch, self._beat])]
        while not self._stop.is_set():
            self._take_all(names)
        self._finish()
        self._gone.set()
        _join(loops, 0.4)
        _join([_start(self._leave)], 0.4)

    def stop(self):
        """Takes no more attempts; run() returns when those in hand are finished or handed back."""
        self._stopped_at = self._stopped_at or time.monotonic()
        self._stop.set()

    def _take_all(self, names):
        """Takes attempts into the slots that are free, if some come within a second."""
        free = 1 if self._slots.acquire(timeout=0.1) else 0
        while free and self._slots.acquire(blocking=False):
            free += 1
        if not free:
            return
        self._parts.rotate()  # so that no part of the queue comes last for ever
        attempts = []
        try:
            attempts = self._pop(names) if self.plain else self._take(self._parts[0], free, names)
        except redis.RedisError as error:
            log.warning("taking attempts: %s", error)
            if _refused(error) and not any(part.known for part in self._parts) and not self.plain:
                self.plain = True
                log.warning("working as with plain=True: an attempt of a dead worker waits for its deadline")
            self._stop.wait(0.2)
        for _ in range(free - len(attempts)):
            self._slots.release()
        killers = [attempt for attempt in attempts if attempt.deaths >= 2]
        for attempt in attempts:
            if attempt not in killers:
                _start(self._work, attempt)
        if killers:
            self._alone(killers)

    def _alone(self, killers):
        """Begins attempts over which workers have died, each when nothing else is in hand. Nothing is taken meanwhile."""
        while not self._stop.is_set():
            if all(attempt in killers for attempt in list(self._in_hand.values())):
                if not killers:
                    return
                _start(self._work, killers.pop(0))
            time.sleep(0.02)
        for attempt in killers:  # handed back
            _start(self._work, attempt)

    def _pop(self, names):
        inputs, seconds = [part.input for part in self._parts], 1
        if isinstance(self._redis, _Cluster):  # no command spans nodes
            inputs, seconds = inputs[:1], 1 / len(inputs)
        taken = self._redis.blpop(inputs, timeout=seconds)
        attempt = taken and self._read(taken[1], _text(taken[0]), names)
        return [attempt] if attempt else []

    def _take(self, part, free, names):
        """Moves entries into the worker's own list. If no part of the queue has any, it waits up to a second for the next one."""
        attempts = []
        owner, entries, order = self._ask(part, free)
        for entry in entries:
            attempt = self._read(entry, part.input, names, (part, owner, entry))
            if attempt is None:
                part.settle((owner, entry))
            else:
                attempts.append(attempt)
        self._empty = 0 if entries else self._empty + 1
        if order:  # it gets nothing while it has one
            self._stop.wait(1.0)
        elif self._empty >= len(self._parts) and not self._stop.is_set():
            try:
                found = self._redis.blmove(part.input, part.input, 1 / len(self._parts), "LEFT", "LEFT")
            except redis.RedisError as error:  # the next take reports the error
                log.warning("waiting for attempts: %s", error)
                self._stop.wait(0.2)
            else:
                self._parts.rotate(-1 if found else 0)  # it has an entry: it is the next again
        return attempts

    def _ask(self, part, most):
        """Takes entries, or gives a heartbeat with 0, and heeds the rest of the reply."""
        owner, entries, order, forgotten = part.take(most)
        if forgotten and not self._gone.is_set():  # it has not left by itself
            log.warning("%s was silent for too long: its attempts were requeued", owner)
            for attempt in list(self._in_hand.values()):
                if attempt._place and attempt._place[:2] == (part, owner):
                    attempt._stop("requeued")
        if order.startswith("stop"):
            self.stop()
        return owner, entries, order

    def _read(self, entry, list_name, names, place=None):
        """The attempt of an entry, which is in hand from now on; None: it cannot be read, and without uids no message can name it."""
        try:
            attempt = Attempt(json.loads(_text(entry)), list_name, names)
        except Exception as error:
            log.error("dropped an entry that cannot be read: %s", repr(error))
            return None
        attempt._send, attempt._ask, attempt._signs_every, attempt._place = self._send, self._verdict, self.signs_every, place
        self._in_hand[id(attempt)] = attempt
        if place and place[0].owner != place[1]:  # it was forgotten meanwhile
            attempt._stop("requeued")
        return attempt

    def _work(self, attempt):
        try:
            if self._stop.is_set():
                attempt._stop("shutdown")
            elif not attempt.stopped.is_set() and not self._begin(attempt):
                attempt._stop("fence_lost")
            log.info("%s: attempt %s begins", attempt.uid, attempt.attempt_no)
            begun = time.monotonic()
            kind, fields = _outcome(self.refresh, attempt)
            reason = ": %s" % fields["reason"] if "reason" in fields else ""
            log.info("%s: %s after %.1f s%s", attempt.uid, kind or attempt.why, time.monotonic() - begun, reason)
            self._answer(attempt, kind, fields)
        finally:
            self._in_hand.pop(id(attempt), None)
            self._slots.release()

    def _begin(self, attempt):
        """Says that the work begins, and asks whether it counts: it may have been superseded while it stood in line."""
        signs = {} if self.signs_every is None else {"signs_every": self.signs_every}
        started = _message(attempt, "started", worker=self.name, **signs)

        commands = [("rpush", attempt._reply_to, started), ("hget", attempt._queue + ":model:" + attempt.uid, "attempt_uid")]
        said = self._with_retry(lambda: _whole(_answers(self._redis, commands)), attempt, "started")
        return said is not None and said[1] == attempt.attempt_uid

    def _verdict(self, attempt, timeout):
        """What the guards of the policy say about the numbers of an attempt. After an error they are asked again, as the reply may be lost."""
        reply_to = "%s:reply:%s.%s" % (attempt._queue, attempt.attempt_uid, _letters())
        message = _message(attempt, "ready", metrics=dict(attempt._metrics), reply_to=reply_to)
        end = time.monotonic() + timeout

        def ask():
            self._redis.rpush(attempt._reply_to, message)
            while time.monotonic() < end:
                attempt.check()
                reply = self._redis.blpop([reply_to], timeout=1)
                if reply:
                    return json.loads(_text(reply[1]))
        said = self._with_retry(ask, attempt, "ready")
        attempt.check()
        if said is None:
            raise Failure("no verdict came within %g s: no poller has answered" % timeout, error_type="no_verdict")
        return said

    def _answer(self, attempt, kind, fields):
        """Pushes a result. After an error it is pushed again, which is safe: the second one is a duplicate."""
        if not attempt._answered.acquire(blocking=False):  # once: it may be handed back meanwhile
            return
        part, owner, entry = attempt._place or (None, None, None)
        pushed = None
        if kind is not None:
            attempt._flush(last=True)
            message = _message(attempt, kind, **fields, **attempt._ending())

            def push():
                return part.answer(owner, entry, attempt._reply_to, message) if part else self._redis.rpush(attempt._reply_to, message)
            pushed = self._with_retry(push, attempt, kind)
        if part and not pushed and not self._gone.is_set():  # an attempt without an answer is requeued
            part.settle((owner, entry))

    def _send(self, attempt, kind, **fields):
        """Pushes a message that may be lost."""
        try:
            self._redis.rpush(attempt._reply_to, _message(attempt, kind, **fields))
        except Exception as error:  # a progress that is no JSON must not cost the result behind it
            log.warning("%s of %s: %s", kind, attempt.uid, error)

    def _with_retry(self, call, attempt=None, kind=None):
        """Calls until Redis answers, whatever error it answers meanwhile. None: Redis will never take it, the attempt no longer counts, or the
        worker has to end. Without an attempt the first of these is raised."""
        ended, pause = self._gone if attempt else self._stop, 0.05
        while True:
            try:
                return call()
            except redis.RedisError as error:  # most of them come without the word that Redis has put in front
                never = _refused(error) or str(error).startswith("WRONGTYPE")
                if attempt is None and (never or isinstance(error, redis.AuthenticationError)):
                    raise
                if never or attempt and attempt._over() or ended.wait(pause * random.uniform(0.5, 1)):
                    if attempt:
                        log.error("attempt %s of %s: %s may not have reached redis: %s", attempt.attempt_uid, attempt.uid, kind, error)
                    return None
                log.warning("redis: %s", error)
            pause = min(2 * pause, 1.0)

    def _watch(self, parts):
        """Compares the attempts in hand of some parts with Redis, and stops those that no longer count."""
        inputs = [part.input for part in parts]
        while not self._gone.wait(self.fence_every):
            attempts = [attempt for attempt in list(self._in_hand.values()) if attempt._queue + "-input" in inputs]
            try:
                found = _answers(self._redis, [("hget", attempt._queue + ":model:" + attempt.uid, field)
                                               for attempt in attempts for field in ("attempt_uid", "deadline_at", "processing_at")])
            except Exception as error:
                log.warning("comparing the attempts in hand: %s", error)
                for attempt in attempts:
                    attempt._taken_at = time.monotonic()
                continue
            for i, attempt in enumerate(attempts):
                try:
                    self._judge(attempt, *_whole(found[3 * i:3 * i + 3]))
                except Exception as error:  # a damaged model harms its own attempt only
                    log.warning("comparing the attempt of %s: %s", attempt.uid, error)

    def _beat(self, parts):
        """Gives a heartbeat a second in some parts, also while all slots work."""
        pause = 1.0
        while not self._gone.wait(pause):
            pause = 1.0
            for part in parts:
                try:
                    if part.known:
                        self._ask(part, 0)
                        part.settle()
                except Exception as error:
                    log.warning("giving a heartbeat: %s", error)
                    pause = 0.1 if isinstance(error, redis.TimeoutError) else pause  # the lease may end soon

    def _leave(self):
        """Ends the heartbeats. Entries that are left in the list of a part are requeued after the lease."""
        for part in self._parts:
            try:
                part.settle()
                part.leave()
            except redis.RedisError as error:
                log.warning("leaving: %s", error)

    def _judge(self, attempt, current, deadline, begun):
        if current != attempt.attempt_uid:
            return attempt._stop("fence_lost")
        attempt._begun, attempt.deadline = bool(begun), _time(deadline)
        passed = attempt.deadline and datetime.datetime.now(datetime.timezone.utc) >= attempt.deadline
        if begun and passed and not attempt._answered.locked():
            attempt._stop("deadline")  # one that passes before `started` is applied is about to move
        else:
            attempt._flush()

    def _finish(self):
        """Waits for the work in hand; stops it after the grace, and hands it back if it does not stop, all of it at the same time."""
        self._until_idle(self._stopped_at + self.grace - time.monotonic())
        for attempt in list(self._in_hand.values()):
            attempt._stop("shutdown")
        self._until_idle(1.0)
        end, left = time.monotonic() + 1.5, list(self._in_hand.values())
        refused = [attempt for attempt in left if attempt._answered.locked()]
        handing_back = [_start(self._answer, attempt, "interrupted" if attempt.why == "shutdown" else None, {}) for attempt in left]
        self._until_idle(end - time.monotonic(), refused)
        _join(handing_back, end - time.monotonic())

    def _until_idle(self, seconds, attempts=None):
        """Waits until those attempts, or all, have been answered for."""
        end = time.monotonic() + seconds
        while any(attempts is None or attempt in attempts for attempt in list(self._in_hand.values())) and time.monotonic() < end:
            time.sleep(0.02)


def _outcome(refresh, attempt):
    """The type and the fields of the message that ends an attempt; None: none, it would be stale."""
    try:
        try:
            attempt.check()
            work = refresh(attempt)
            if inspect.isgenerator(work) or inspect.isasyncgen(work):
                raise TypeError("expected a handler that does the work, found a generator, which nobody runs: it has a yield")
            if inspect.isawaitable(work):
                asyncio.run(_awaited(work))
            kind, fields = "success", {} if attempt.changed else {"changed": False}
            if attempt._metrics:
                fields["metrics"] = dict(attempt._metrics)
            if attempt.verdict not in (None, "publish"):
                fields["published"] = False
        except Postpone as wish:
            kind, fields = "postponed", {"retry_after": wish.seconds}
        except Failure as failure:
            kind, fields = "failure", failure.fields
        _message(attempt, kind, **fields, **attempt._ending())  # what cannot be told is a failure
    except BaseException as error:  # a SystemExit in a thread, too
        if not attempt.stopped.is_set():
            log.exception("refreshing %s", attempt.uid)
        kind, fields = "failure", {"reason": _reason(error), "error_type": type(error).__name__}
    if attempt.why in _UNHEARD:
        return None, {}
    if attempt.why == "shutdown" and kind != "success":
        return "interrupted", {}  # it may have failed or only stopped
    return kind, fields


async def _awaited(work):
    return await work


def _seconds(value):
    return value.total_seconds() if isinstance(value, datetime.timedelta) else value


def _reason(error):
    """The text of an exception, with its class where the text is none or has no words: that of KeyError("x") is 'x'."""
    name = type(error).__name__
    try:
        text = str(error)
        if not text:
            return repr(error)
    except Exception:
        return name + ", whose text cannot be read"
    return text if not isinstance(error, KeyError) and re.search(r"[^\W\d_]", text) else "%s: %s" % (name, text)


def _message(attempt, kind, **fields):
    """A text is cut where a poller would cut it: so no message is too large for a Redis that is short of memory."""
    fields = {name: value[:2000] if isinstance(value, str) and name != "log" else value for name, value in fields.items()}
    return json.dumps({"type": kind, "uid": attempt.uid, "refresh_attempt_uid": attempt.attempt_uid, **fields}, allow_nan=False)


class testing:
    """Tests of a worker without Redis: told, = refreshd.testing.run(refresh, [{"input_url": "…"}])"""

    @staticmethod
    def attempt(payload=None, uid="model", *, verdicts=("publish",), **fields):
        """An attempt by hand, also to call a handler with. told lists its messages; sleep() only adds to slept. fields are others of its entry in
        docs/wire.md. verdicts are what ready() gets, the last one again: words, or replies such as {"verdict": "hold", "reason": "no rows"}."""
        entry = {"attempt_no": 1, "fence": 1, "due_at": "2026-01-01T00:00:00.000Z", "for": "planned", "payload": dict(payload or {}), **fields}
        entry = json.loads(json.dumps(dict(entry, big_table_uid=uid, refresh_attempt_uid="attempt"), allow_nan=False))  # as a worker gets it
        replies = [] if isinstance(verdicts, str) else [{"verdict": one} if isinstance(one, str) else one for one in verdicts]
        if not replies or any(one.get("verdict") not in ("publish", "hold", "fail", "stale") for one in replies):
            raise ValueError("verdicts: expected a list of publish, hold, fail or stale, or of replies with one, found %r" % (verdicts,))
        return _Given(entry, replies)

    @staticmethod
    def stop(attempt, why):
        """Stops the work, as a worker does by "deadline", "shutdown", "fence_lost" or "requeued": check() and sleep() raise Stopped from now on."""
        if why not in _UNHEARD + ("shutdown",):
            raise ValueError("why: expected one of %s, shutdown, found %r" % (", ".join(_UNHEARD), why))
        attempt._stop(why)

    @staticmethod
    def run(refresh, attempts):
        """Lets a worker do each attempt, or payload. Returns for each the messages that would go to Redis behind `started`, as dicts."""
        attempts = [one if isinstance(one, Attempt) else testing.attempt(one) for one in attempts]
        with concurrent.futures.ThreadPoolExecutor(1) as thread:  # as in a worker: the test may have an event loop
            for attempt in attempts:
                thread.submit(attempt._run, refresh).result()
        return [attempt.told for attempt in attempts]


sys.modules[__name__ + ".testing"] = testing  # for: import refreshd.testing


class _Given(Attempt):
    _status_every = 0

    def __init__(self, entry, verdicts):
        names = _Names.__new__(_Names)
        names.model, names.attempt, names.nested = "big_table_uid", "refresh_attempt_uid", True
        super().__init__(entry, "testing-input", names)
        self.told, self.slept, self._verdicts, self._send, self._ask = [], 0, list(verdicts), self._tell, self._judge

    def sleep(self, seconds):
        self.check()
        self.slept += seconds

    def _tell(self, attempt, kind, **fields):
        self.told.append(json.loads(_message(attempt, kind, **fields)))

    def _judge(self, attempt, timeout):
        self._tell(attempt, "ready", metrics=dict(attempt._metrics), reply_to="testing:reply:1")
        return self._verdicts.pop(0) if len(self._verdicts) > 1 else self._verdicts[0]

    def _run(self, refresh):
        kind, fields = _outcome(refresh, self)
        self._answered.acquire(blocking=False)
        if kind is not None:
            self._tell(self, kind, **fields, **self._ending())


class _Taken:
    """The entries that the worker has taken from one part of the queue. They are in a list of their own in Redis until they are answered. When the worker gives no
    heartbeat for longer than its lease, a dispatcher requeues that list, and forgets the name of the worker."""

    def __init__(self, client, part, pool):
        self.input, self.owner, self.known = part + "-input", pool, False  # known: Redis has heard of the owner
        self._redis, self._part, self._pool, self._lock = client, part, pool, threading.Lock()
        self._entries = collections.Counter()  # each from its arrival until Redis has its answer
        self._gone = collections.Counter()  # answered since the last take was asked for, whose reply may list them yet
        self._settled = []  # owner and entry that need no message, and that Redis has not removed yet
        self._doubt = False  # a reply was lost: more entries may be there

    def take(self, most):
        """Takes up to so many entries; with 0 it is a heartbeat only. An owner that was forgotten never comes back, so that nothing under way about
        it can be taken for news of the next one. Returns the owner, its new entries, the order of an operator, and whether it was forgotten."""
        with self._lock:
            owner, known = self.owner, -1 if self._doubt else sum(self._entries.values())
            keys = (self.input, self._list(owner), self._part + ":workers", self._part + ":orders")
            arguments = ("", owner, "" if self.known else "1", most, known, self._pool)
            if most:
                self._gone, self._doubt = collections.Counter(), True  # until there is a reply
        _, follows, found, order = self._run(_TAKE_DIGEST, _TAKE, keys, *arguments)
        with self._lock:
            if owner != self.owner:
                return owner, [], "", False
            if follows == 0:
                self.owner, self.known, self._doubt = self._pool + "~" + _letters(), False, False
                self._entries, self._settled = collections.Counter(), []
                return owner, [], "", True
            self.known, self._doubt = True, self._doubt and not most
            had = self._entries + self._gone if follows == 2 else collections.Counter()  # the reply repeats these
            new = []
            for entry in found:
                if had[entry] > 0:
                    had[entry] -= 1
                elif len(new) < most:
                    new.append(entry)
            self._entries.update(new)
            return owner, new, _text(order), False

    def answer(self, owner, entry, output, message):
        """Pushes a message that ends an attempt ("": none) and removes its entry, in one step; does neither if the entry was requeued."""
        if owner == self.owner:
            self._run(_ANSWER_DIGEST, _ANSWER, (output, self._list(owner)), "1", entry, message)
            with self._lock:
                if owner == self.owner and self._entries[entry] > 0:
                    self._entries[entry] -= 1
                    self._gone[entry] += 1
        return True

    def settle(self, *places):
        """Removes entries that need no message, and retries removals that have failed."""
        with self._lock:
            places, self._settled = self._settled + list(places), []
        for place in places:
            try:
                self.answer(*place, self._part + "-output", "")
            except redis.RedisError as error:
                log.warning("removing an entry: %s", error)
                with self._lock:
                    self._settled.append(place)

    def leave(self):
        if self.known and not self._doubt and not any(self._entries.values()):
            self._redis.zrem(self._part + ":workers", self.owner)

    def _list(self, owner):
        return self._part + ":taken:" + owner

    def _run(self, digest, text, keys, *arguments):
        try:
            return self._redis.evalsha(digest, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError as unloaded:  # no daemon of this version has loaded it
            try:
                return self._redis.eval(text, len(keys), *keys, *arguments)
            except redis.RedisError as error:
                raise unloaded if _refused(error) else error  # the user may only run scripts that the daemons load, and they will


def wins(connection, key, fence, table="refreshd_fences"):
    """Whether nobody has published under key with this fence or a higher one. Call it first in the transaction that publishes; if not, roll back."""
    if fence is None:
        raise ValueError("this attempt has no fence: its entry has none")
    if not re.fullmatch(r"\w+(\.\w+)?", table):
        raise ValueError("table: expected a name such as refreshd_fences, found %r" % table)
    cursor = connection.cursor()
    try:
        if re.search("mysql|mariadb", type(connection).__module__, re.IGNORECASE):
            cursor.execute("INSERT INTO " + table + " (name, fence) VALUES (%s, 0) ON DUPLICATE KEY UPDATE name = name", (key,))
            cursor.execute("UPDATE " + table + " SET fence = %s WHERE name = %s AND fence < %s", (fence, key, fence))
        else:
            cursor.execute("INSERT INTO " + table + " AS t (key, fence) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET fence = excluded.fence"
                           " WHERE t.fence < excluded.fence", (key, fence))
        return cursor.rowcount == 1
    finally:
        cursor.close()


def publish(connection, key, fence, write, table="refreshd_fences"):
    """Calls write(connection), which must let errors of the database out, in a transaction of its own if it wins, commits, and returns whether it has.
    What the database ends for the sake of another one is run again, up to 10 times. The connection must be in no transaction, and not commit by itself."""
    by_itself = connection.get_autocommit() if hasattr(connection, "get_autocommit") else getattr(connection, "autocommit", False)
    if by_itself or getattr(getattr(connection, "info", None), "transaction_status", 0):  # only psycopg knows the status
        raise ValueError("connection: expected one without autocommit and in no transaction, found another")
    for left in reversed(range(10)):
        try:
            won = wins(connection, key, fence, table)
            if won:
                connection.cursor().execute("SAVEPOINT refreshd")  # it ends with the transaction
                write(connection)
                try:
                    connection.cursor().execute("RELEASE SAVEPOINT refreshd")
                except Exception as error:
                    error.args += ("write has swallowed an error of the database, or has committed: let errors out, and leave the commit to publish",)
                    raise
            (connection.commit if won else connection.rollback)()
            return won
        except BaseException as error:
            connection.rollback()
            codes = [getattr(error, name, None) for name in ("sqlstate", "pgcode", "errno")] + list(error.args)
            if left == 0 or not any(code in ("40001", "40P01", 1213, 1020) for code in codes):  # the last two: of MySQL
                raise


def publish_file(path, data, fence):
    """Replaces a file by these bytes as one step, unless somebody has with this fence or a higher one. Needs a file system with locks (flock)."""
    import fcntl  # not on Windows
    if fence is None:
        raise ValueError("this attempt has no fence: its entry has none")
    folder, name = os.path.split(os.path.abspath(path))
    with open(os.open(os.path.join(folder, "." + name + ".fence"), os.O_RDWR | os.O_CREAT, 0o644), "r+b") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if int(guard.read() or b"0") >= fence:
            return False
        handle, written = tempfile.mkstemp(dir=folder, prefix="." + name + ".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(written, 0o644)
            os.replace(written, path)
        except BaseException:
            os.unlink(written)
            raise
        guard.seek(0)
        guard.write(b"%d\n" % fence)  # it never becomes shorter, so a crash leaves the old one or the new one
    return True


class Refused(Exception):
    """A command was refused. counter is the reason: busy, stopped, unknown_model, malformed, no_uid or unknown_type."""

    def __init__(self, reply):
        super().__init__(reply.get("reason", reply["outcome"]))
        self.reply, self.counter = reply, reply.get("counter")
        self.field, self.expected, self.found = (reply.get(name) for name in ("field", "expected", "found"))


class NoReply(Exception):
    """No poller has answered in time. Sent again with this command_id the command is done once. uids: the models without a reply; replies: those so far."""

    def __init__(self, command_id, known="", uids=(), replies=()):
        about = " about " + ", ".join(map(str, uids[:3])) if uids else ""
        super().__init__("no reply to the command %s%s%s%s" % (command_id, about, " and %d others" % (len(uids) - 3) if len(uids) > 3 else "", known))
        self.command_id, self.uids, self.replies = command_id, list(uids), list(replies)


class Model:
    """A model as it was when it was read, with times in UTC; None: there is no such time or text. state is a word of docs/states.md, or "broken" if
    its refresh_at cannot be read. status, progress: last said by a worker. parked_by: what it waits for. fields: all fields of its hash, texts."""

    def __init__(self, uid, fields, now):
        self.uid, self.fields = uid, fields
        self.refresh_at, self.last_success_at, self.failing_since = (_readable(_time, fields.get(name)) for name in (
            "refresh_at", "last_success_at", "failing_since"))
        self.refresh_why, self.parked_by, self.freshness = (fields.get(name) for name in ("refresh_why", "parked_by", "freshness"))
        self.status, self.disabled_reason = fields.get("user_friendly_status"), fields.get("refresh_disabled_user_friendly_reason")
        self.progress = _readable(int, fields.get("progress"))
        self.labels = {name[len("label:"):]: value for name, value in fields.items() if name.startswith("label:")}
        if fields.get("refresh_disabled_until_update"):
            self.state = "disabled"
        elif fields.get("attempt_uid"):
            self.state = "processing" if fields.get("processing_at") else "queued"
        elif self.refresh_at is None:
            self.state = "broken" if fields.get("refresh_at") else "finished"
        else:
            self.state = "parked" if self.parked_by else "due" if self.refresh_at <= now else "scheduled"


class Client:
    """Reads models and sends commands of an application. Each command waits up to timeout seconds for its reply, a dict as docs/wire.md has it; None:
    it is only sent. by is who wants it, for the journal. Any number of threads may share a client."""

    def __init__(self, *, redis=None, queue=None, by=None, timeout=10.0):
        self.by, self.timeout = by, timeout
        self._redis, self._queue, self._names, self._used = _connect(redis, 10), _queue(queue), None, False

    def close(self):
        """Closes the connections."""
        for one in list(self._redis._nodes.values()) if isinstance(self._redis, _Cluster) else [self._redis]:
            one.connection_pool.disconnect()

    def get(self, uid):
        """The model as it is now; None: there is none of that name. It has no payload."""
        fields, now = _whole(_answers(self._redis, [("hgetall", self._home(uid) + ":model:" + uid), ("time",)]))
        if not fields:
            return self._nothing(None)
        now = datetime.datetime.fromtimestamp(now[0], datetime.timezone.utc)
        return Model(uid, {_text(name): _text(value) for name, value in fields.items()}, now)

    def history(self, uid, n=10):
        """The attempts that ended last, at most so many, newest first: dicts as docs/wire.md has an entry of the history."""
        entries = self._redis.lrange(self._home(uid) + ":history:" + uid, 0, n - 1) if n > 0 else []
        return [entry for entry in (_readable(json.loads, _text(entry)) for entry in entries) if isinstance(entry, dict)] or self._nothing([])

    def list(self, selector, *, after="", limit=1000):
        """The sorted uids of the models with all labels, and a status of disabled, failing, late, parked, running or stale, of a selector such as
        "status=failing,tenant=t1". It goes through all models of the first term. The next page begins after the last uid of this."""
        if limit < 1:
            raise ValueError("limit: expected at least 1, found %r" % limit)
        names, found = _indexes(selector), set()
        for home in self._homes():
            (index, *others), cursor = [self._spelled(home, name) for name in names], None
            while cursor != 0:
                labelled = index.startswith("label:")
                cursor, page = getattr(self._redis, "sscan" if labelled else "zscan")(home + ":" + index, cursor or 0, count=500)
                uids = [uid for uid in (_text(one if labelled else one[0]) for one in page) if uid > after]
                commands = [("smismember" if other.startswith("label:") else "zmscore", home + ":" + other, uids) for other in others if uids]
                found.update(uid for uid, *held in zip(uids, *_whole(_answers(self._redis, commands)))
                             if all(score and (other != "late" or score < _NEVER) for other, score in zip(others, held)))
                if len(found) > 2 * limit + 1000:
                    found = set(sorted(found)[:limit])
        return sorted(found)[:limit] or self._nothing([])

    def put(self, uid, payload=None, *, command_id=None, **definition):
        """Saves a model. definition: rrule, timezone, dtstart, refresh ("now" or "planned"), policy (a name or a dict), labels."""
        return self._send("put", uid, command_id, payload=payload, **definition)

    def put_many(self, definitions):
        """Saves models, each a dict as docs/wire.md has a definition. Returns their replies in order, of refused ones too. After NoReply repeat it: what
        was saved is unchanged."""
        return self._exchange(dict(one, type="put", command_id=None) for one in definitions)

    def run(self, uid, *, force=None, command_id=None):
        """Refreshes a model now. Refused (busy) while it is being refreshed, unless force is True."""
        return self._send("run", uid, command_id, force=force)

    def enable(self, uid, *, command_id=None):
        return self._send("enable", uid, command_id)

    def disable(self, uid, reason=None, *, command_id=None):
        return self._send("disable", uid, command_id, reason=reason)

    def remove(self, uid, *, command_id=None):
        return self._send("remove", uid, command_id)

    def accept(self, uid, *, command_id=None):
        """Lets the success count that a guard of the policy doubts; reject() makes it a failure."""
        return self._send("accept", uid, command_id)

    def reject(self, uid, *, command_id=None):
        return self._send("reject", uid, command_id)

    def hold(self, id, reason, *, selector=None, for_=None, until=None, within=None, command_id=None):
        """Lets no model of a selector (None: any) start for so long (seconds, a timedelta, or "2h"), until a time, or until release()."""
        until = until.isoformat() if isinstance(until, datetime.datetime) else until
        return self._send("hold", None, command_id, id=id, reason=reason, selector=selector, until=until, within=_seconds(within), **{"for": _seconds(for_)})

    def release(self, id, *, within=None, command_id=None):
        return self._send("release", None, command_id, id=id, within=_seconds(within))

    def _nothing(self, nothing):
        """Hands on that nothing was found. Once it warns if no daemon has used the queue: its name may be wrong."""
        if not self._used:
            self._used = True
            signs = ("hget", "{%s}:settings" % self._queue.strip("{}"), "layout"), ("zrange", self._homes()[0] + ":pollers", 0, 0)
            if not any(_answers(self._redis, signs)):
                log.warning("queue %s: nothing was ever stored in it", self._queue)
        return nothing

    def _spelled(self, home, index):
        """A host as it was written, if a label has it so, or in small letters, as those of URLs are stored."""
        small = index.lower() if index.startswith("label:host=") else index
        return index if small == index or self._redis.scard(home + ":" + index) else small

    def _homes(self):
        self._names = self._names or _Names(self._redis, self._queue)
        return self._names.parts

    def _home(self, uid):
        """The part of a model; of no name any, which passes a command on."""
        if not isinstance(uid, str):
            raise TypeError("uid: expected a text, found %r" % (uid,))
        parts = self._homes()
        return parts[zlib.crc32(uid.encode()) % len(parts)]

    def _send(self, kind, uid, command_id, **fields):
        reply, = self._exchange([dict(fields, type=kind, uid=uid, command_id=command_id)])
        if reply and reply["outcome"] == "refused":
            raise Refused(reply)
        return reply

    def _exchange(self, commands):
        """Pushes commands in steps to the parts of their models, and waits for their replies under a name of its own."""
        reply_to, sent, replies = ":reply:%s" % uuid.uuid4(), [], {}
        for step in list(_steps(self._written(one, reply_to) for one in commands)):  # what is no JSON is refused before any is sent
            sent += step
            try:
                self._push(step)
            except _LOST:  # with the same command_id each is carried out once
                self._push(step)
            for home in dict.fromkeys(one.home for one in step) if self.timeout else ():
                if not self._await(home, home + reply_to, step, replies):
                    raise self._no_reply(home, sent, replies)
        return [replies.get(one.id) for one in sent]

    def _written(self, fields, reply_to):
        home = self._home("" if fields.get("uid") is None else fields["uid"])
        fields.update(command_id=fields["command_id"] or str(uuid.uuid4()), by=self.by, reply_to=home + reply_to if self.timeout else None)
        return _Command(home, fields["command_id"], fields.get("uid"), _text_of(fields))

    def _push(self, commands):
        for home in dict.fromkeys(one.home for one in commands):
            self._redis.rpush(home + "-control", *(one.text for one in commands if one.home == home))

    def _await(self, home, reply_to, step, replies):
        """Adds the replies to the commands in a part, the first one to each, and returns whether they came. After a lost connection it pushes again."""
        end, lost = time.monotonic() + self.timeout, False
        while any(one.home == home and one.id not in replies for one in step):
            if time.monotonic() >= end:
                return False
            try:
                if lost:
                    self._push([one for one in step if one.id not in replies])
                lost, first = False, self._redis.blpop(reply_to, timeout=1)
                more = self._redis.lpop(reply_to, 1000) if first and len(step) > 1 else None
            except _LOST as error:
                if isinstance(error, redis.AuthenticationError):
                    raise
                lost, first = True, None
                time.sleep(0.1)
            for text in [first[1], *(more or ())] if first else ():
                reply, end = json.loads(_text(text)), time.monotonic() + self.timeout
                replies.setdefault(reply.get("command_id") if len(step) > 1 else step[0].id, reply)  # a wrong id is not in its reply
        return True

    def _no_reply(self, home, sent, replies):
        self._names = None  # the queue may have been divided since
        missing = [one for one in sent if one.id not in replies]
        return NoReply(missing[0].id, self._pollers(home), [one.uid for one in missing if one.uid], [replies.get(one.id) for one in sent])

    def _pollers(self, home):
        """What NoReply says: where it has waited and, if the user of Redis may ask, whether a poller lives."""
        text = " in the queue %s within %g s" % (home, self.timeout)
        try:
            last, now = _whole(_answers(self._redis, [("zrange", home + ":pollers", -1, -1, False, True), ("time",)]))
        except redis.RedisError:
            return text
        silence = now[0] - int(last[0][1]) // 1000 if last else 0
        return text + (": no poller has given a heartbeat for %d s" % silence if silence > 5 else _LIVES if last else ": no poller is running")


class AsyncClient:
    """Client for code with an event loop: its methods are awaited, and each waits in a thread, of which it has 32. Close it, or use async with."""

    def __init__(self, **options):
        self._client, self._threads = Client(**options), concurrent.futures.ThreadPoolExecutor(32, "refreshd")

    def __getattr__(self, name):
        if name.startswith("_"):  # copy asks for some before there is a client
            raise AttributeError(name)
        method = getattr(self._client, name)
        return lambda *args, **more: asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(method, *args, **more))

    async def close(self):
        """Closes the connections, and takes no more commands."""
        self._threads.shutdown(wait=False)
        self._client.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()


_BATCH, _BATCH_BYTES = 250, 1 << 20  # commands: a list of replies keeps 1,000; what Redis gets at once
_NEVER = 253402214400000  # the score of models without a success in the set of late ones
_LIVES = ": a poller lives; to a command that is larger than its --message-cap, or no JSON, it does not reply: see `refreshd rejected ls`"


_Command = collections.namedtuple("_Command", "home id uid text")


def _steps(commands):
    step, size = [], 0
    for one in commands:
        if step and (len(step) == _BATCH or size + len(one.text) > _BATCH_BYTES):
            yield step
            step, size = [], 0
        step.append(one)
        size += len(one.text)
    yield step


def _text_of(fields):
    fields = {name: value for name, value in fields.items() if value is not None}
    try:
        return json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        kind, what = type(error), error
        if isinstance(error, UnicodeError):
            kind, what = ValueError, "%s: expected a text in UTF-8, found one that is not" % _unfit(fields, "")
        raise kind("%s %s: %s" % (fields["type"], fields.get("uid") or fields.get("id"), what)) from None


def _unfit(value, path):
    """The path of a text that is not UTF-8, or of the object with such a name; None: there is none."""
    if isinstance(value, str):
        return path if re.search("[\ud800-\udfff]", value) else None
    if isinstance(value, dict):
        inner = [pair for name, one in value.items() for pair in ((str(name), path), (one, "%s.%s" % (path, name)))]
    else:
        inner = [(one, "%s[%d]" % (path, i)) for i, one in enumerate(value)] if isinstance(value, (list, tuple)) else []
    return next((found.lstrip(".") for found in (_unfit(one, where) for one, where in inner) if found is not None), None)


def _queue(name):
    name = name or os.environ.get("REFRESHD_QUEUE", "bigtables")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}|\{[A-Za-z0-9_.:-]{1,64}\}", name):
        raise ValueError('queue: expected 1-64 letters, digits or _.- as in "bigtables" or "{bigtables:3}", found %s' % json.dumps(name, ensure_ascii=False))
    return name


def _indexes(selector):
    """The names of the sets whose models a selector picks."""
    names = []
    for term in (term.strip() for term in selector.split(",")):
        status = re.fullmatch("status=(disabled|failing|late|parked|running|stale)", term)
        label = re.fullmatch(r"(?!(?:status|uid|policy|error|waits)=)([a-z][a-z0-9_.-]{0,31})=([^|=]*)", term)
        if not status and not (label and re.fullmatch("[A-Za-z0-9_.:/@+-]{1,60}", label.group(2))):
            want, found = ("for %s a label: 1-60 letters, digits or _.:/@+-" % label.group(1), label.group(2)) if label else (
                "labels such as tenant=t1 and one status of disabled, failing, late, parked, running or stale, with commas between them", term)
            raise ValueError("selector: expected %s, found %s" % (want, json.dumps(found, ensure_ascii=False)))
        names += ["late"] if term == "status=late" else []  # and once more to look at the scores: see _NEVER
        names.append(status.group(1) if status else "label:" + term)
    return names


class _Names:
    """What a queue is divided into, and how its messages call things."""

    def __init__(self, client, queue):
        bare = queue.strip("{}")
        fields = ("parts", "model_name", "attempt_name", "payload")
        parts, model, attempt, payload = _whole(_answers(client, [("hget", "{%s}:settings" % bare, field) for field in fields]))
        self.parts = ["{%s:%d}" % (bare, i) for i in range(int(parts))] if parts and int(parts) > 1 else [queue]
        self.model, self.attempt, self.nested = model or "big_table_uid", attempt or "refresh_attempt_uid", payload == "nested"


_LOST = (redis.ConnectionError, redis.TimeoutError, getattr(redis.exceptions, "ClusterDownError", redis.ConnectionError))


class _Cluster:
    """A Redis Cluster, with a client for each node. Those who move a key say where it is. A command to a node that is lost fails, and the next one
    asks any node who has the key now. RedisCluster of redis-py 4.3 does not find out after some failovers, and fails where a slot moves."""

    def __init__(self, addresses, options):
        self._addresses = dict.fromkeys(addresses)  # all that are known, the last one to fail at the end
        self._homes, self._nodes, self._options, self._lock = {}, {}, options, threading.Lock()  # who has a hash tag; its client

    def __getattr__(self, command):
        return lambda *args, **more: self._send(command, args, more)

    def _send(self, command, args, more):
        key = "" if not args else args[2] if command.startswith("eval") else args[0] if isinstance(args[0], str) else args[0][0]
        tag = re.search(r"\{([^}]+)|$", key).group(1) or key
        with self._lock:
            home = self._homes.get(tag)
            left, asking = [home] if home else list(self._addresses), False  # whom to ask yet
        end = time.monotonic() + 3
        for _ in range(8):
            address = left.pop(0)
            try:
                reply = self._ask(address, asking, command, args, more)
                if not asking:
                    self._homes[tag] = address
                return reply
            except redis.RedisError as error:
                to, asking = self._elsewhere(error)
                lost = isinstance(error, _LOST) or str(error).startswith("CLUSTERDOWN")
                with self._lock:
                    if to:
                        self._addresses.setdefault(to)
                    elif lost:
                        self._homes.pop(tag, None)
                        self._addresses[address] = self._addresses.pop(address, None)
                left = [to] if to else left if lost else []
                last = error
            if not left or time.monotonic() > end:
                break
        raise last

    @staticmethod
    def _elsewhere(error):
        """The node that has a key, if an error names one, and whether only the next command goes there. Versions of redis-py say it by class or by text."""
        if isinstance(error, redis.exceptions.AskError):
            return "%s:%s" % (error.host, error.port), not isinstance(error, redis.exceptions.MovedError)
        found = re.match(r"(MOVED|ASK) \d+ (\S+:\d+)$", str(error))
        return (found.group(2), found.group(1) == "ASK") if found else (None, False)

    def _ask(self, address, asking, command, args, more):
        with self._lock:
            if address not in self._nodes:
                host, _, port = address.rpartition(":")
                self._nodes[address] = redis.Redis(host=host, port=int(port), **self._options)
        node = self._nodes[address]
        if not asking:
            return getattr(node, command)(*args, **more)
        pipe = node.pipeline(transaction=False)
        pipe.execute_command("ASKING")  # holds for the next command
        getattr(pipe, command)(*args, **more)
        reply = pipe.execute(raise_on_error=False)[1]
        if isinstance(reply, Exception):
            raise reply
        return reply


def _connect(client, seconds):
    """A client of our own, also of one that is handed over. It waits so long for Redis, and tries nothing again by itself: redis-py waits for ever if
    nobody says how long, and redis-py 6 tries again for longer than the lease."""
    if not (client is None or isinstance(client, (str, redis.Redis))):
        raise TypeError("redis: expected a URL or a redis.Redis, found %s.%s; a cluster is redis-cluster://HOST:PORT"
                        % (type(client).__module__, type(client).__name__))
    ours = {"socket_timeout": seconds, "socket_connect_timeout": seconds, "socket_keepalive": True,
            "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0)}
    if int(redis.__version__.split(".")[0]) >= 5:
        ours["protocol"] = 2  # with 3, redis-py 8 changes timeouts when a server announces maintenance
    if not isinstance(client, redis.Redis):
        url = client or os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
        if re.match("rediss?-cluster:", url):
            return _cluster(url, dict(ours, socket_timeout=3, socket_connect_timeout=3))
        client = redis.Redis.from_url(url)
    pool = client.connection_pool
    bound = re.compile("retry_|orig_|maint_|oss_|himport_|event_")  # to the other pool, or to its timeouts
    options = {name: value for name, value in pool.connection_kwargs.items() if not bound.match(name)}
    options.update(ours, decode_responses=False, encoding="utf-8")
    if "path" in options:  # a unix socket
        del options["socket_connect_timeout"], options["socket_keepalive"]
    made = redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
    made._of = client  # a connection of Sentinel asks its pool for the master
    return made


def _cluster(url, options):
    host = r"(?:\[[^]]+\]|[^][:@,/?#]+)(?::\d+)?"
    found = re.fullmatch(r"redis(s?)-cluster://(?:([^:@]*):([^/]+)@)?(%s(?:,%s)*)(?:/0?)?" % (host, host), url)
    if found is None:
        raise ValueError("redis: expected redis-cluster://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...], and no database")
    secure, user, password, hosts = found.groups()
    options["ssl"] = bool(secure)
    options.update((name, urllib.parse.unquote(text)) for name, text in (("username", user), ("password", password)) if text)
    return _Cluster([re.sub(r"[][]", "", host if re.search(r":\d+$", host) else host + ":6379") for host in hosts.split(",")], options)


def _whole(answers):
    """Raises the first error among them as it came: execute() would put its own words in front."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def _answers(client, commands):
    """What Redis answers to each command, errors too, with one round trip unless it is a cluster."""
    if isinstance(client, _Cluster):
        return [_tried(client, name, args) for name, *args in commands]
    if not commands:
        return []
    pipe = client.pipeline(transaction=False)
    for name, *args in commands:
        getattr(pipe, name)(*args)
    return [_text(answer) for answer in pipe.execute(raise_on_error=False)]


def _tried(client, name, args):
    try:
        return _text(getattr(client, name)(*args))
    except redis.ResponseError as error:
        return error


def _start(call, *args):
    thread = threading.Thread(target=call, args=args, daemon=True)
    thread.start()
    return thread


def _join(threads, seconds):
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))


def _refused(error):
    """Whether the user of Redis may not do that."""
    return isinstance(error, redis.exceptions.NoPermissionError) or str(error).startswith("NOPERM")


def _owner():
    """The name under which a worker takes: host, process and since when, with letters behind them that nobody else has."""
    host = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname())[:60] or "unknown"
    return "%s:%d-%s-%s" % (host, os.getpid(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), _letters())


def _letters():
    return "".join(random.SystemRandom().choices("abcdefghijklmnopqrstuvwxyz234567", k=8))


def _text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _time(text):
    """2026-11-21T07:00:00.000Z, as refreshd writes it."""
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00") if text else None


def _readable(read, text):
    """What a text says; None: nothing that can be read."""
    try:
        return read(text)
    except (TypeError, ValueError):
        return None


# >>> scripts of refreshd, written by: go test ./scripts -run TestTheClients -update
_TAKE_DIGEST = "a4c1cd36c70c6c8966c0342aec062366316fba1a"
_TAKE = r'''
local function clock(argument)
  if argument ~= '' then
    return argument
  end
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local input, taken, workers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, new = clock(ARGV[1]), ARGV[2], ARGV[3]
local most, known, pool = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local wrong, unfit = wrong_type({'list',
  'list',
  'zset',
  'hash'})
if unfit[3] or (unfit[1] or unfit[2]) and most > 0 then
  return wrong
end
if new == '' and not redis.call('ZSCORE', workers, owner) then
  return {now, 0, {}, ''}
end
redis.call('ZADD', workers, now, owner)
local entries, order = {}, not unfit[4] and redis.call('HGET', orders, pool) or ''
if most == 0 then
  return {now, 1, entries, order}
end
if redis.call('LLEN', taken) > known then
  return {now, 2, redis.call('LRANGE', taken, 0, -1), order}
end
if order ~= '' then
  return {now, 1, entries, order}
end
for _ = 1, math.min(most, redis.call('LLEN', input)) do
  entries[#entries + 1] = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')
end
return {now, 1, entries, order}
'''
_ANSWER_DIGEST = "f9d19687854ff6b49b48f4439f0a55026bbdbac3"
_ANSWER = r'''
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local wrong = wrong_type({'list',
  'list'})
if wrong then
  return wrong
end
local output, taken = KEYS[1], KEYS[2]

local codes = {}
for i = 1, #ARGV, 3 do
  local ends, entry, message = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if ends == '' or redis.call('LREM', taken, 1, entry) == 1 then
    code = 1
    if message ~= '' then
      redis.call('RPUSH', output, message)
    end
  end
  codes[#codes + 1] = code
end
return codes
'''
# <<< scripts
