"""The worker that `refreshd conformance` asks for: its payload says how the attempt ends. See clients/README.md of refreshd.

    refreshd conformance -- python3 examples/conformance.py
"""

import hashlib
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import refreshd  # noqa: E402


def refresh(attempt):
    todo = attempt.payload
    if todo.get("status"):
        attempt.status(todo["status"], todo.get("progress"))
    attempt.sleep(todo.get("after_ms", 0) / 1000)
    if todo["do"] == "fail":
        raise refreshd.Failure(todo["reason"], error_type=todo.get("error_type"), retryable=todo.get("retryable"),
                               user_friendly_reason=todo.get("user_friendly_reason"))
    if todo["do"] == "postpone":
        raise refreshd.Postpone(todo["seconds"])
    if todo["do"] == "hang":
        time.sleep(3600)
    if todo["do"] == "digest":
        attempt.status(hashlib.sha256(todo["text"].encode()).hexdigest())


refreshd.Worker(refresh, concurrency=int(os.environ.get("REFRESHD_CONCURRENCY", 4)), fence_every=0.1, grace=0.3,
                signs_every=1).run()
