"""Runs a notebook in IPython, and prints it with its outputs: notebooks.py FILE; notebooks.py FILE --save writes it."""

import contextlib
import io
import json
import sys
from pathlib import Path

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell


class Publisher(DisplayPublisher):
    """What cells display, as notebooks have it."""

    def publish(self, data, metadata=None, **_):
        shown = {kind: lines(text) for kind, text in data.items()}
        self.shell.shown.append({"output_type": "display_data", "data": shown, "metadata": {}})


class Hook(DisplayHook):
    """Displays the results of cells."""

    def write_format_data(self, data, metadata=None):
        self.shell.display_pub.publish(data)

    def write_output_prompt(self):
        pass

    finish_displayhook = write_output_prompt


class Shell(InteractiveShell):
    """Keeps what cells display and raise."""

    def init_display_pub(self):
        self.display_pub = Publisher(parent=self, shell=self)

    def _showtraceback(self, kind, error, stack):
        about = {"ename": kind.__name__, "evalue": str(error), "traceback": stack}
        self.shown.append({"output_type": "error"} | about)


def run(notebook):
    """Run the cells in a new shell, and put their outputs in place of those that the notebook has."""
    shell = Shell.instance(displayhook_class=Hook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        shell.shown, printed = [], io.StringIO()
        with contextlib.redirect_stdout(printed):
            shell.run_cell("".join(cell["source"]), store_history=True)
        text = {"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}
        cell["execution_count"] = count
        cell["outputs"] = [text, *shell.shown] if text["text"] else shell.shown


def lines(text):
    return text.splitlines(keepends=True)


def main(name, save=""):
    path = Path(name)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    run(notebook)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if save:
        path.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
