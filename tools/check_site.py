"""Checks a built site: each link to a page or to a place in one leads somewhere. Links to other sites are not followed.

python tools/check_site.py FOLDER
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places and the links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """The links of the pages that lead nowhere. rustdoc checks its own, and the theme has templates in `_static`."""
    found = []
    pages: dict[Path, Page] = {}

    def page(path: Path) -> Page:
        if path not in pages:
            pages[path] = Page(path)
        return pages[path]

    for source in sorted(site.rglob("*.html")):
        if source.relative_to(site).parts[0] in ("rust", "_static"):
            continue
        for link in sorted(page(source).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (source.parent / unquote(parts.path)).resolve() if parts.path else source
            if target.is_dir():
                target /= "index.html"
            is_page = target.suffix == ".html" and target.is_file()
            if not target.is_file() or (
                is_page and parts.fragment and unquote(parts.fragment) not in page(target).places
            ):
                found.append(f"{source.relative_to(site)}: {link}")
    return found


def main() -> int:
    links = broken(Path(sys.argv[1]).resolve())
    for link in links:
        print(f"broken link: {link}", file=sys.stderr)
    return bool(links)


if __name__ == "__main__":
    sys.exit(main())
