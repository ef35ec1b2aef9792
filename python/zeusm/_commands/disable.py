"""`zeusm disable`: takes back what `zeusm enable` did."""

from argparse import Namespace

from zeusm._commands.enable import files
from zeusm._commands.run import failure

NAME = "disable"
HELP = "Take back `zeusm enable`."


def call(_options: Namespace) -> int:
    paths = files()
    for path in paths:
        try:
            path.unlink()
        except OSError as error:
            return failure(NAME, f"{path}: {error.strerror}", 1)
        print(f"removed {path}")
    if not paths:
        print("zeusm is not enabled")
    return 0
