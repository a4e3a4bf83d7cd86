"""The worker of the example, but with the refresh() of a test: it says what the payload's plan tells for this attempt."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples" / "pythonworker"))
import worker  # noqa: E402


def refresh(attempt, current):
    plan = attempt["plan"]
    yield from plan[min(attempt["attempt_no"], len(plan)) - 1]


worker.refresh = refresh
worker.main()
