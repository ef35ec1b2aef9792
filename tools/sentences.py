"""Finds sentences that are too long: sentences.py FILE...

The files are Markdown. A heading, an item of a list, a cell of a table and a paragraph each end a sentence; code and the
targets of links do not count.
"""

import re
import sys
from pathlib import Path

LONGEST = 38  # Words.
FENCE = re.compile(r"^ *(```|~~~|:::)")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
LINK = re.compile(r"\]\([^)]*\)")
NAMES = "zeusm|pyo3|dpctl|dpnp|numba|scikit|pip|one(?:API|CCL|DAL|DNN|DPL|MKL)"
SENTENCE = re.compile(rf"(?<=[.!?:])[\")*_`]* +(?=[\"(*_`\[]*(?:[A-Z0-9`\[]|{NAMES}))")
WORD = re.compile(r"\w")


def paragraphs(text):
    """Each piece of prose, with the number of its first line."""
    inside, piece, begin = False, [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if FENCE.match(line):
            inside = not inside if "```" in line or "~~~" in line else inside
            line = ""
        elif inside:
            continue
        if not line.strip() or line.startswith(("|", "#", "![")) or ITEM.match(line):
            if piece:
                yield begin, " ".join(piece)
            piece = []
        if line.startswith("#"):
            yield number, line
        elif line.startswith("|"):
            cells = line.replace(r"\|", " ").strip().strip("|").split("|")
            yield from ((number, cell) for cell in cells)
        elif line.strip():
            if not piece:
                begin = number
            piece.append(line.strip())


def too_long(text):
    """The line, the number of words and the beginning of each sentence that is too long."""
    for number, piece in paragraphs(text):
        for sentence in SENTENCE.split(LINK.sub("]", piece)):
            words = [word for word in sentence.split() if WORD.search(word)]
            if len(words) > LONGEST:
                yield number, len(words), " ".join(words[:8])


def main():
    found = 0
    for name in sys.argv[1:]:
        for number, words, begin in too_long(Path(name).read_text()):
            print(f"{name}:{number}: {words} words in a sentence: {begin} ...")
            found += 1
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
