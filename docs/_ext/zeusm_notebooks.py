"""Notebooks as pages: their text, their code, and the outputs that they were saved with."""

import json
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from myst_parser.sphinx_ import Parser
from sphinx.application import Sphinx


def fenced(kind: str, lines: str | list[str]) -> str:
    """A block of Markdown, with a fence that is in no cell."""
    text = "".join(lines).rstrip("\n")
    return f"~~~~~~~~{kind}\n{text}\n~~~~~~~~\n"


def markdown(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            yield "".join(cell["source"])
            continue
        yield fenced("python", cell["source"])
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                yield fenced("{raw} html", data["text/html"])
            else:
                lines = output.get("text") or data["text/plain"]
                yield fenced("{code-block} text", [":class: output\n\n", *lines])


class NotebookParser(Parser):
    """Reads the Markdown of a notebook."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        super().parse("\n\n".join(markdown(json.loads(inputstring))), document)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
