"""Prints the items."""

import os
import sqlite3

for item in sqlite3.connect(os.environ["DATABASE"]).execute("SELECT feed, title, link FROM items ORDER BY feed, id"):
    print(*item, sep="  ")
