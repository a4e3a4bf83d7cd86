from django.core.management.base import BaseCommand, CommandError

from feeds.models import Feed, client


class Command(BaseCommand):
    help = "Saves the models of all feeds, and removes those without a feed. Run it every few minutes by cron."

    def handle(self, **_):
        known, after = set(), ""  # read before the rows, so that the model of a new row stays
        while page := client.list("kind=feed", after=after):
            known.update(page)
            after = page[-1]
        feeds = list(Feed.objects.all())
        replies = client.put_many(feed.definition() for feed in feeds)
        for uid in known - {feed.uid for feed in feeds}:
            client.remove(uid)
        refused = ["%s: %s" % (reply["uid"], reply["reason"]) for reply in replies if reply["outcome"] == "refused"]
        if refused:
            raise CommandError("\n".join(refused))
