"""What the pages of an application show: it saves models, lists and reads them, holds some, and accepts a doubted result."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import refreshd  # noqa: E402


def show(*values):
    print(json.dumps(values, separators=(",", ":"), ensure_ascii=False))


def until(uid, holds):
    """What a page shows that asks again and again."""
    while True:
        model = shop.get(uid)
        if holds(model):
            return model
        time.sleep(0.02)


shop = refreshd.Client(by="shop")
guarded = {"timeout": "1h", "retries": ["1h"], "guard": [{"rows": {"min": 1}}], "on_suspect": "hold"}
models = [{"uid": "tbl_%02d" % i, "payload": {"rows": i}, "rrule": "every day at 6 AM", "policy": guarded,
           "labels": {"kind": "feed", "tenant": "t%d" % (i % 2)}} for i in range(30)]
saved = shop.put_many(models + [dict(models[0], uid="tbl_99", timezone="Mars/Base")])
show("saved", sum(reply["outcome"] == "applied" for reply in saved), saved[-1]["outcome"], saved[-1]["field"])
show("saved again", sum(reply["outcome"] == "unchanged" for reply in shop.put_many(models)))
show("tenant t0", *shop.list("tenant=t0"))
show("next page", *shop.list("tenant=t1, kind=feed", after="tbl_05", limit=3))
try:
    shop.list("policy=nightly")
except ValueError:
    show("no such list")
show("nobody", shop.get("nobody"), *shop.history("nobody"))

new = shop.get("tbl_07")
show("new", new.uid, new.state, new.refresh_why, new.refresh_at.hour, new.last_success_at, new.status, new.progress, new.labels["tenant"])
show("run", shop.run("tbl_07")["outcome"])
done = until("tbl_07", lambda model: model.last_success_at)
show("refreshed", done.state, done.status, done.progress, done.failing_since, shop.history("tbl_07", 1)[0]["metrics"])

shop.run("tbl_20")
working = until("tbl_20", lambda model: model.status)
show("working", working.state, working.status, *shop.list("status=running"))
show("disable", shop.disable("tbl_20", "has not paid")["outcome"])
stopped = shop.get("tbl_20")
show("disabled", stopped.state, stopped.refresh_at, stopped.disabled_reason, *shop.list("status=disabled"))

show("hold", shop.hold("move", "moves house", selector="tenant=t1", for_="2h")["outcome"], shop.run("tbl_09")["outcome"])
held = until("tbl_09", lambda model: model.state == "parked")
show("held", held.parked_by, *shop.list("tenant=t1,status=parked"))
show("release", shop.release("move")["outcome"], until("tbl_09", lambda model: model.last_success_at).state)

shop.run("tbl_13")
failing = until("tbl_13", lambda model: model.failing_since)
last = shop.history("tbl_13")[0]
show("failing", failing.state, last["is"], last["reason"], shop.list("status=failing,tenant=t1"), shop.list("status=failing,tenant=t0"))

shop.run("tbl_00")
doubted = until("tbl_00", lambda model: model.parked_by)
show("doubted", doubted.state, doubted.parked_by, shop.history("tbl_00")[0]["suspect"])
show("accept", shop.accept("tbl_00")["outcome"], until("tbl_00", lambda model: model.last_success_at).state)
show("reject", shop.reject("tbl_00")["outcome"])  # nothing is doubted
