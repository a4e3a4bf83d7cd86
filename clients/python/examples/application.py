"""An application: it saves a model, runs it, stops it, and forgets it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import refreshd  # noqa: E402


def tell(what, command):
    try:
        print("%s: %s" % (what, command()["outcome"]))
    except refreshd.Refused as refused:
        print("%s: refused, %s" % (what, refused.counter))


shop = refreshd.Client(by="shop")
feed = {"input_url": "https://example.com/größe.csv"}
tell("put", lambda: shop.put("tbl_1", feed, rrule="every day at 6 AM", labels={"tenant": "t1"}))
tell("put again", lambda: shop.put("tbl_1", feed, rrule="every day at 6 AM", labels={"tenant": "t1"}))
tell("run", lambda: shop.run("tbl_1"))
tell("disable", lambda: shop.disable("tbl_1", "has not paid"))
tell("run it then", lambda: shop.run("tbl_1"))
tell("enable", lambda: shop.enable("tbl_1"))
tell("remove", lambda: shop.remove("tbl_1"))
tell("run it then", lambda: shop.run("tbl_1"))
tell("put nonsense", lambda: shop.put("tbl_1", feed, rrule="every blue moon"))
