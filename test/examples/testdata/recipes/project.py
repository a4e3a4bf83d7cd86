"""The project around the application of examples/django, and what a test does with it: ACTION [ID|NAME] [URL]."""

import os
import sys

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.test import RequestFactory

sys.path.insert(0, os.environ["RECIPE"])
settings.configure(
    ALLOWED_HOSTS=["testserver"], DEFAULT_AUTO_FIELD="django.db.models.AutoField", INSTALLED_APPS=["feeds"], SECRET_KEY="-", USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}])
django.setup()
from feeds import models, views  # noqa: E402

action, args = sys.argv[1], sys.argv[2:]
if action == "create":
    with connection.schema_editor() as editor:
        editor.create_model(models.Feed)
if action == "die":
    models.client.put = lambda **_: os._exit(3)
if action in ("save", "die", "rollback"):
    with transaction.atomic():
        feed = models.Feed.objects.create(name=args[0], url=args[1])
        print(feed.pk)
        sys.stdout.flush()
        if action == "rollback":
            transaction.set_rollback(True)
if action == "reconcile":
    call_command("reconcile")
if action == "page":
    print(views.index(RequestFactory().get("/")).content.decode())
if action == "delete":
    models.Feed.objects.get(pk=args[0]).delete()
if action == "lose":
    connection.cursor().execute("DELETE FROM feeds_feed")
