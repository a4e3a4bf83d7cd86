"""The navigation of the site: the headings of docs/README.md, the pages that they list, and the playground. Links to folders."""
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


def on_page_markdown(markdown, page, **_):
    """A link to a folder leads to its README, as it does on a forge."""
    here = pathlib.Path(page.file.abs_src_path).parent

    def readme(link):
        return f"]({link[1]}/README.md)" if (here / link[1] / "README.md").is_file() else link[0]

    return re.sub(r"\]\(([\w./-]+?)/?\)", readme, markdown)
