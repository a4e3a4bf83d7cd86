"""The navigation of the site: the headings of docs/README.md, and the pages that they list."""
import pathlib
import re


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
