"""The Python snippets of the documents, and the examples, by the environment that has what they import."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The blocks of the tutorial: a file with its name, a session of the interpreter, commands of the shell.
FILE = re.compile(
    r"^```\{code-block\} python\n:caption: (.+?)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Packages that only the environment of tests/peers has, and of tests/jax.
PEERS = re.compile(
    r"^\s*(?:import|from) (?:dask|distributed|mpi4py|ray|zeusm_dask|zeusm_ray)\b", re.MULTILINE
)
JAX = re.compile(r"^\s*(?:import|from) jax\b", re.MULTILINE)


def snippets(of_peers=False, of_jax=False):
    """Each fenced Python block and its name, document and line, of those that need a peer, or JAX, or neither."""
    for document in documents():
        text = document.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            needs = bool(PEERS.search(match[1])), bool(JAX.search(match[1]))
            if needs == (of_peers, of_jax):
                yield match[1], f"{document.relative_to(ROOT)}:{line}"


def documents():
    """The README and the pages of the site, without what the site's build generates."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in pages if "generated" not in page.parts)]


def commands(text):
    """Each command of the shell in a page, and its expected output."""
    for block in COMMANDS.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def examples(of_peers):
    """The examples that need a peer, or the others."""
    paths = sorted((ROOT / "examples").glob("*.py"))
    return [path for path in paths if bool(PEERS.search(path.read_text())) == of_peers]
