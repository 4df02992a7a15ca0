"""scripts/site: the guides as a static site."""

import html.parser
import pathlib
import shutil
import subprocess
import urllib.parse

import pytest

import hf
from browser import Browser

SCRIPT = hf.ROOT / "scripts" / "site"


def make_site(output, root=hf.ROOT):
    return subprocess.run([SCRIPT, output, root], capture_output=True, text=True)


@pytest.fixture(scope="module", name="site")
def made_site(tmp_path_factory):
    output = tmp_path_factory.mktemp("site") / "site"
    done = make_site(output)
    assert done.returncode == 0, done.stderr
    return output


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("href", "src")]
        self.anchors |= {value for name, value in attrs if name == "id"}


def test_every_page_is_there_and_every_link_leads_somewhere(site):
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    wanted = {path.with_suffix("").name for path in (hf.ROOT / "docs").glob("*.md") if path.name != "README.md"}
    assert wanted <= {path.stem for path in pages} and site / "index.html" in pages
    for path, links in pages.items():
        for link in links.found:
            where = urllib.parse.urlsplit(link)
            if where.scheme:
                continue
            target = pathlib.Path((path.parent / where.path).resolve()) if where.path else path
            assert target.is_file(), f"{path}: {link}"
            assert not where.fragment or where.fragment in pages[target].anchors, f"{path}: {link}"


def test_nothing_comes_from_elsewhere_and_nothing_for_the_tests_is_shown(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<script" not in text and 'src="http' not in text and 'stylesheet" href="http' not in text
        assert "&lt;!-- not run" not in text and "<!-- " not in text.replace("<!-- Made by", "")


@pytest.mark.parametrize("link, told", [("nowhere.md", "nowhere.md"), ("keys.md#no-such-heading", "no-such-heading"),
                                        ("../../outside.md", "outside.md")])
def test_a_broken_link_fails_and_is_named(tmp_path, link, told):
    for name in ("README.md", "docs"):
        (shutil.copytree if name == "docs" else shutil.copy)(hf.ROOT / name, tmp_path / name)
    (tmp_path / "docs/broken.md").write_text(f"# Broken\n\n[see]({link})\n", encoding="utf-8")
    done = make_site(tmp_path / "site", tmp_path)
    assert done.returncode != 0 and not (tmp_path / "site").exists()
    assert "docs/broken.md" in done.stderr and told in done.stderr


@pytest.fixture(scope="module", name="browser")
def made_browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(site, browser, width):
    browser.open(f"file://{site}/index.html", width=width)
    for path in site.rglob("*.html"):
        browser.goto(url=f"file://{path}")
        assert browser.evaluate(script="document.documentElement.scrollWidth") <= width, path
