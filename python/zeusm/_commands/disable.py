"""`zeusm disable`: takes back what `zeusm enable` did."""

from argparse import ArgumentParser, Namespace

from zeusm._commands.enable import failure, files

NAME = "disable"
HELP = "Take back `zeusm enable`."


def add_arguments(_parser: ArgumentParser) -> None:
    """There are no arguments."""


def call(_options: Namespace) -> int:
    paths = files()
    for path in paths:
        try:
            path.unlink()
        except OSError as error:
            return failure(NAME, path, error)
        print(f"removed {path}")
    if not paths:
        print("zeusm is not enabled")
    return 0
