"""Tests of refreshd.testing, and examples of its use: python3 -m unittest discover -s clients/python/tests"""

import asyncio
import datetime
import logging
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import refreshd  # noqa: E402
import refreshd.testing  # noqa: E402
from refreshd import testing  # noqa: E402

logging.disable(logging.CRITICAL)


def told(refresh, *attempts):
    """What attempts have told, without their uids."""
    return [[{name: value for name, value in message.items() if name not in ("uid", "refresh_attempt_uid")} for message in messages]
            for messages in testing.run(refresh, attempts or [{}])]


def failing(error):
    def refresh(attempt):
        raise error
    return refresh


class TestRun(unittest.TestCase):
    def test_a_success_comes_behind_each_status_with_what_the_handler_said(self):
        def refresh(attempt):
            for part in (1, 2):
                attempt.status("part %d" % part, 50 * part)
            attempt.metric("rows", 3)
            attempt.unchanged()
            attempt.log("2 parts")

        self.assertEqual(told(refresh), [[
            {"type": "user_friendly_status", "status": "part 1", "progress": 50},
            {"type": "user_friendly_status", "status": "part 2", "progress": 100},
            {"type": "success", "changed": False, "metrics": {"rows": 3}, "log": "2 parts"},
        ]])

    def test_messages_name_the_model_and_its_attempt(self):
        message, = testing.run(lambda attempt: None, [testing.attempt(uid="tbl_1")])[0]
        self.assertEqual(message, {"type": "success", "uid": "tbl_1", "refresh_attempt_uid": "attempt"})

    def test_each_attempt_has_its_own_payload(self):
        urls = []
        self.assertEqual(len(told(lambda attempt: urls.append(attempt.payload["input_url"]), {"input_url": "a"}, {"input_url": "b"})), 2)
        self.assertEqual(urls, ["a", "b"])

    def test_a_failure_has_the_fields_of_the_handler(self):
        failure = refreshd.Failure("gone", error_type="http_404", retryable=False, user_friendly_reason="The feed is gone")
        self.assertEqual(told(failing(failure)), [[{
            "type": "failure", "reason": "gone", "error_type": "http_404", "retryable": False, "user_friendly_reason": "The feed is gone"}]])

    def test_an_exception_whose_text_has_no_words_is_told_with_its_class(self):
        for error, reason in ((KeyError("x"), "KeyError: 'x'"), (ValueError(404), "ValueError: 404"), (AssertionError(), "AssertionError()"),
                              (TypeError("expected str"), "expected str"), (refreshd.Failure(KeyError("x")), "KeyError: 'x'")):
            self.assertEqual(told(failing(error))[0][0]["reason"], reason)

    def test_a_postponed_attempt(self):
        self.assertEqual(told(failing(refreshd.Postpone(60))), [[{"type": "postponed", "retry_after": 60}]])

    def test_an_async_handler_runs_also_where_an_event_loop_runs(self):
        async def refresh(attempt):
            await asyncio.sleep(0)
            attempt.metric("rows", 1)

        async def test():
            return told(refresh)
        self.assertEqual(asyncio.run(test()), [[{"type": "success", "metrics": {"rows": 1}}]])

    def test_a_failing_async_handler(self):
        async def refresh(attempt):
            raise refreshd.Failure("gone")
        self.assertEqual(told(refresh), [[{"type": "failure", "reason": "gone"}]])

    def test_a_length_of_time_is_told_in_seconds(self):
        hour = datetime.timedelta(hours=1)
        self.assertEqual(told(failing(refreshd.Postpone(hour))), [[{"type": "postponed", "retry_after": 3600}]])
        self.assertEqual(told(failing(refreshd.Failure("busy", retry_after=hour))), [[{"type": "failure", "reason": "busy", "retry_after": 3600}]])

    def test_what_cannot_be_told_is_a_failure_of_its_class(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        unset = refreshd.Failure.__new__(refreshd.Failure)  # of a class that does not call super().__init__()
        for error, kind in ((refreshd.Postpone(float("inf")), "ValueError"), (refreshd.Postpone(object()), "TypeError"), (Mute(), "Mute"),
                            (refreshd.Failure("gone", retry_after={1}), "TypeError"), (refreshd.Failure(Mute()), "Failure"), (unset, "AttributeError")):
            message, = told(failing(error))[0]
            self.assertEqual((message["type"], message.get("error_type", "Failure")), ("failure", kind))

    def test_a_status_that_is_no_json_does_not_cost_the_result_behind_it(self):
        refreshd.Worker(None)._send(testing.attempt(), "user_friendly_status", progress={1})

    def test_a_generator_does_no_work_and_fails(self):
        def refresh(attempt):
            yield

        async def stream(attempt):
            yield
        for handler in (refresh, stream):
            message, = told(handler)[0]
            self.assertEqual((message["type"], message["error_type"]), ("failure", "TypeError"))

    def test_whatever_can_be_awaited_is_awaited(self):
        class Later:
            def __await__(self):
                raise refreshd.Failure("awaited")
                yield
        self.assertEqual(told(lambda attempt: Later()), [[{"type": "failure", "reason": "awaited"}]])

    def test_what_is_wrong_with_the_test_is_raised(self):
        attempt = testing.attempt()
        attempt._tell = None
        with self.assertRaises(TypeError):
            testing.run(lambda attempt: None, [attempt])


class TestAttempt(unittest.TestCase):
    def test_its_payload_went_through_json(self):
        self.assertEqual(testing.attempt({"rows": (1, 2), 3: None}).payload, {"rows": [1, 2], "3": None})
        with self.assertRaises(ValueError):
            testing.attempt({"rows": float("nan")})

    def test_verdicts_that_no_poller_gives_are_refused(self):
        for verdicts in ("hold", [], ["maybe"], [{"reason": "no rows"}]):
            with self.assertRaisesRegex(ValueError, "verdicts: expected"):
                testing.attempt(verdicts=verdicts)

    def test_sleep_takes_no_time(self):
        attempt = testing.attempt()
        attempt.sleep(3600)
        attempt.sleep(1)
        self.assertEqual(attempt.slept, 3601)

    def test_fields_of_its_entry(self):
        attempt = testing.attempt({"fence": "of the payload"}, attempt_no=3, fence=7, deadline_at="2026-11-21T07:00:00.000Z", deaths=2)
        self.assertEqual((attempt.attempt_no, attempt.fence, attempt.deadline.hour, attempt.deaths), (3, 7, 7, 2))
        self.assertEqual(attempt.payload, {"fence": "of the payload"})

    def test_verdicts_come_in_their_order_and_the_last_one_again(self):
        attempt = testing.attempt(verdicts=["publish", {"verdict": "hold", "reason": "no rows"}])
        self.assertEqual([attempt.ready({"rows": n}) for n in (3, 0, 0)], [True, False, False])
        self.assertEqual(attempt.doubt, "no rows")
        self.assertEqual([message["metrics"] for message in attempt.told], [{"rows": 3}, {"rows": 0}, {"rows": 0}])

    def test_what_a_guard_doubts_is_not_published(self):
        attempt = testing.attempt(verdicts=["hold"])
        testing.run(lambda attempt: attempt.ready({"rows": 0}), [attempt])
        self.assertEqual(attempt.told[-1]["published"], False)

    def test_a_stale_verdict_ends_the_work_without_a_message(self):
        attempt = testing.attempt(verdicts=["stale"])
        testing.run(lambda attempt: attempt.ready(), [attempt])
        self.assertEqual([message["type"] for message in attempt.told], ["ready"])


class TestStop(unittest.TestCase):
    def stopped(self, why):
        """What an attempt tells that is stopped in the middle of its work."""
        def refresh(attempt):
            testing.stop(attempt, why)
            attempt.status("never told")
            attempt.check()
            self.fail("the work went on")
        return told(refresh)

    def test_after_its_deadline_an_attempt_tells_nothing(self):
        self.assertEqual(self.stopped("deadline"), [[]])

    def test_at_a_shutdown_it_is_handed_back(self):
        self.assertEqual(self.stopped("shutdown"), [[{"type": "interrupted"}]])

    def test_a_success_counts_also_at_a_shutdown(self):
        self.assertEqual(told(lambda attempt: testing.stop(attempt, "shutdown")), [[{"type": "success"}]])

    def test_check_and_sleep_raise_stopped(self):
        attempt = testing.attempt()
        testing.stop(attempt, "fence_lost")
        for step in (attempt.check, lambda: attempt.sleep(1)):
            with self.assertRaises(refreshd.Stopped):
                step()

    def test_a_wrong_reason_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected one of .*deadline.*, found 'late'"):
            testing.stop(testing.attempt(), "late")

    def test_an_attempt_without_a_worker_says_how_to_make_one(self):
        names = type("Names", (), {"model": "uid", "attempt": "a", "nested": True})
        with self.assertRaisesRegex(RuntimeError, r"refreshd\.testing\.attempt"):
            refreshd.Attempt({"uid": "tbl_1", "a": "a1"}, "q-input", names).status("half")


if __name__ == "__main__":
    unittest.main()
