"""The command `zeusm`, which is `python -m zeusm`, too."""

import os
import sys

#: `STATUS_CONTROL_C_EXIT`, by which Windows' shell knows a program that Ctrl-C has ended.
CONTROL_C_EXIT = 0xC000013A - (1 << 32)

PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def drop_current_folder() -> None:
    """Take back what `-m` put before all folders of modules, where a user's `random.py` would be imported in the place of Python's."""
    try:
        here = os.getcwd()
    except OSError:  # It was removed, so it was not put there either.
        return
    if not sys.flags.safe_path and sys.path[0] == here != PACKAGES:
        del sys.path[0]


if __name__ == "__main__":
    drop_current_folder()

import argparse  # noqa: E402
import contextlib  # noqa: E402
import io  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from typing import NoReturn  # noqa: E402

from zeusm import __version__  # noqa: E402
from zeusm._commands import COMMANDS  # noqa: E402


class Parser(argparse.ArgumentParser):
    """Names the choice that a misspelt one may mean; Python 3.15 does so by itself."""

    def error(self, message: str) -> NoReturn:
        from difflib import get_close_matches

        if found := re.search(r"invalid choice: '(.+)' \(choose from (.+)\)$", message):
            for name in get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), 1):
                message += f"; did you mean {name}?"
        super().error(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit status."""
    parser = Parser(
        prog="zeusm", description="USM memory for Intel GPUs, and a Level Zero runtime on the CPU."
    )
    parser.add_argument("--version", action="version", version=f"zeusm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        if hasattr(command, "add_arguments"):
            command.add_arguments(own)
        own.set_defaults(call=command.call)
    # A process may be started without these files.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Names of files and devices may have characters that the output's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    try:
        status: int = options.call(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return interrupted()
    except OSError as error:
        # The reader of a closed pipe wants no more.
        if not isinstance(error, BrokenPipeError):
            print(f"zeusm: {error}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            # The interpreter flushes what is left at its exit, and would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def interrupted() -> int:
    """End as programs without a handler of Ctrl-C do, so that a shell's loop ends, too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        print("zeusm: interrupted", file=sys.stderr, flush=True)
        sys.stdout.flush()
    if sys.platform == "win32":
        return CONTROL_C_EXIT
    os.kill(os.getpid(), signal.SIGINT)
    return 128 + signal.SIGINT  # Where the signal is blocked.


if __name__ == "__main__":
    sys.exit(main())
