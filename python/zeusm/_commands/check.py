"""`zeusm check`: a command on the CPU runtime with its checker on."""

import os
import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace

import zeusm
from zeusm._commands.run import environment_for, execute, failure

NAME = "check"
HELP = (
    "Run a command on zeusm's CPU runtime, and report what would go wrong on a discrete GPU: accesses of the host to device "
    "memory, accesses outside of allocations and to freed memory, races. The exit status is 86 if something was found."
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--leaks", action="store_true", help="report memory and objects that are alive at the exit"
    )
    parser.add_argument(
        "--uninitialised",
        action="store_true",
        help="report copies to the host of bytes that were never written",
    )
    parser.add_argument(
        "--frames",
        action="store_true",
        help="print all frames of the stacks, also those of installed packages and of compiled functions",
    )
    parser.add_argument(
        "--report",
        metavar="PATH",
        help="write the report there, as JSON, or as SARIF if it ends in .sarif; %%p is the process id",
    )
    parser.add_argument(
        "--suppressions",
        metavar="PATH",
        type=existing,
        help="a file of findings that are not reported",
    )
    parser.add_argument(
        "--exit-code",
        metavar="N",
        type=status,
        help="the exit status if something was found; 0: the command's",
    )
    parser.add_argument("command", metavar="COMMAND", help="the program")
    parser.add_argument("arguments", metavar="...", nargs=REMAINDER, help="its arguments")


def status(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 255:
        raise ArgumentTypeError(f"{number} is no exit status, which is from 0 to 255")
    return number


def existing(path: str) -> str:
    try:
        with open(path):
            return path
    except OSError as error:
        raise ArgumentTypeError(f"{path}: {error.strerror}") from None


def open_streams() -> None:
    """Open /dev/null where the command would get a closed standard stream: its first file would have that number, and with
    2 the report's text."""
    for number in range(3):
        try:
            is_kept = os.get_inheritable(number)
        except OSError:
            is_kept = False
        if not is_kept:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            os.set_inheritable(number, True)  # Which `dup2` leaves as it is if both are the same.


def call(options: Namespace) -> int:
    if sys.platform == "win32":
        return failure(NAME, "the checker is for Linux", 1)
    try:
        runtime = zeusm.runtime()
        if runtime.kind != "cpu":
            return failure(NAME, f"the runtime is {runtime.path}; set ZEUSM_RUNTIME=cpu", 1)
        environment = environment_for(runtime)
    except (zeusm.LevelZeroError, ValueError) as error:
        return failure(NAME, error, 1)
    further = [name for name in ("leaks", "uninitialised", "frames") if getattr(options, name)]
    environment["ZEUSM_CHECK"] = ",".join(["1", *further])
    # Intel MPI maps the file of an allocation itself, from its begin, and a checked allocation ends with its last page.
    environment.setdefault("I_MPI_OFFLOAD_FAST_MEMCPY", "0")
    for option, variable in {
        options.report: "ZEUSM_CHECK_REPORT",
        options.suppressions: "ZEUSM_CHECK_SUPPRESSIONS",
    }.items():
        if option:
            environment[variable] = os.path.abspath(option)
    if options.exit_code is not None:
        environment["ZEUSM_CHECK_EXIT_CODE"] = str(options.exit_code)
    sys.stdout.flush()
    open_streams()
    return execute(NAME, options, environment)
