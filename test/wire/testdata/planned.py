"""The worker of the example, but with the refresh() of a test: it says what the payload's plan tells for this attempt.

    python3 planned.py HOST PORT QUEUE...

It serves several queues, and goes where a cluster sends it.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples" / "pythonworker"))
import worker  # noqa: E402


class Cluster(worker.Redis):
    def command(self, *words):
        try:
            return super().command(*words)
        except RuntimeError as refused:
            if not str(refused).startswith("MOVED "):
                raise
            host, port = str(refused).split()[-1].rsplit(":", 1)
        self.__init__(host, int(port))  # all keys of one queue are there
        return self.command(*words)


def refresh(attempt, current):
    plan = attempt["plan"]
    yield from plan[min(attempt["attempt_no"], len(plan)) - 1]


def serve(queue):
    redis = Cluster(sys.argv[1], int(sys.argv[2]))
    while True:
        worker.work(redis, queue, refresh)


for queue in sys.argv[3:]:
    threading.Thread(target=serve, args=(queue,)).start()
