"""A feed is a row, and a model of refreshd that follows the row after each commit."""

import logging

import refreshd
from django.db import models, transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

client = refreshd.Client(by="django", timeout=2)
log = logging.getLogger(__name__)


class Feed(models.Model):
    name = models.CharField(max_length=200)
    url = models.URLField()

    @property
    def uid(self):
        return "feed_%d" % self.pk

    def definition(self):
        return {"uid": self.uid, "payload": {"input_url": self.url}, "rrule": "every day at 6 AM", "labels": {"kind": "feed"}}

    def model(self):
        """What refreshd knows of the feed now; None: nothing yet."""
        return client.get(self.uid)


@receiver([post_save, post_delete], sender=Feed)
def follow(instance, **_):
    pk, uid = instance.pk, instance.uid
    transaction.on_commit(lambda: sync(pk, uid))


def sync(pk, uid):
    """Saves or removes the model of a row. The row is committed: what fails here, the command reconcile does later."""
    try:
        feed = Feed.objects.filter(pk=pk).first()  # as it was committed last, perhaps by another request
        if feed:
            client.put(**feed.definition(), refresh="now")
        else:
            client.remove(uid)
    except Exception:
        log.exception("%s: the row is committed, its model is not saved yet", uid)
