"""The Python snippets of the documents, and the examples, by the environment that has what they import."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Packages that only the environment of tests/peers has.
PEERS = re.compile(
    r"^\s*(?:import|from) (?:dask|distributed|mpi4py|ray|zeusm_dask)\b", re.MULTILINE
)


def snippets(of_peers):
    """Each fenced Python block and its name, document and line, of those that need a peer, or of the others."""
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = document.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            if bool(PEERS.search(match[1])) == of_peers:
                yield match[1], f"{document.name}:{line}"


def examples(of_peers):
    """The examples that need a peer, or the others."""
    paths = sorted((ROOT / "examples").glob("*.py"))
    return [path for path in paths if bool(PEERS.search(path.read_text())) == of_peers]
