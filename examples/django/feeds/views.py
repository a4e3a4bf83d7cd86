from django.shortcuts import render

from feeds.models import Feed


def index(request):
    return render(request, "feeds/index.html", {"feeds": Feed.objects.order_by("name")})
