"""The navigation of the site: the headings of docs/README.md, the pages that they list, and the playground beside them."""
import pathlib
import re

from mkdocs.structure.nav import Link


def on_config(config):
    pages = []
    config["nav"] = [{"refreshd": "README.md"}]
    for line in pathlib.Path(config["docs_dir"], "docs/README.md").read_text().splitlines():
        if heading := re.match("## (.+)", line):
            pages = []
            config["nav"].append({heading[1]: pages})
        elif entry := re.match(r"\* \[(.+?)\]\(([\w-]+\.md)\)", line):
            pages.append({entry[1]: "docs/" + entry[2]})
    return config


def on_nav(nav, **_):
    nav.items.append(Link("Playground", "playground/index.html"))  # deploy/playground.sh
