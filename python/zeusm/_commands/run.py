"""`zeusm run`: a command, and all processes that it starts, with zeusm's runtime in the place of the Level Zero loader."""

import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace

import zeusm

NAME = "run"
HELP = (
    "Run a command whose processes, of any language, find zeusm's Level Zero runtime: SYCL programs and Python programs that "
    "do not import zeusm. Where an Intel GPU with a working driver serves, the command runs unchanged."
)

#: Windows finds its own loader before those of PATH.
ONLY_LINUX = "this command is for Linux; on Windows, a program that imports zeusm before dpctl has its runtime"

#: The name by which programs open a Level Zero library.
LOADER = "ze_loader.dll" if sys.platform == "win32" else "libze_loader.so.1"
PATHS = "LD_LIBRARY_PATH"
#: The libraries that OpenCL's loader opens. It may read the variable before the runtime is initialised, which adds itself then.
OPENCL = "OCL_ICD_FILENAMES"
#: Variables that a program has unless it sets them.
DEFAULTS = {
    # What the CPU runtime sets when it is initialised, for programs that load SYCL's adapter before: it reads the variable then.
    "UR_L0_QUEUE_SYNCHRONIZE_NON_BLOCKING": "0",
    # Ways of Intel MPI's collectives that end the process (docs/limits.md).
    "I_MPI_OFFLOAD_COLL_PIPELINE": "0",
    "I_MPI_OFFLOAD_ALLREDUCE_KERNEL_MDFI_AWARE": "0",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="say on standard error which runtime serves"
    )
    parser.add_argument("command", metavar="COMMAND", help="the program")
    parser.add_argument("arguments", metavar="...", nargs=REMAINDER, help="its arguments")


def call(options: Namespace) -> int:
    if sys.platform == "win32":
        return failure(NAME, ONLY_LINUX, 1)
    try:
        runtime = zeusm.runtime()
        environment = environment_for(runtime)
    except (zeusm.LevelZeroError, ValueError) as error:
        return failure(NAME, error, 1)
    if options.verbose:
        print(f"zeusm run: {runtime.kind}, {runtime.path}: {runtime.reason}", file=sys.stderr)
    return execute(NAME, options, environment)


def execute(name: str, options: Namespace, environment: dict[str, str]) -> int:
    """Replace this process by the command of `options`; returns a status only if that fails."""
    if not options.command:
        return failure(name, "the command is empty", 127)
    try:
        os.execvpe(options.command, [options.command, *options.arguments], environment)
    except FileNotFoundError as error:
        reason = in_this_folder(name, options.command) or error.strerror
        return failure(name, f"{options.command}: {reason}", 127)  # As shells do.
    except OSError as error:
        return failure(name, f"{options.command}: {error.strerror}", 126)


def in_this_folder(name: str, command: str) -> str | None:
    """Say how to run a file of the current folder, which is not looked for without a path."""
    if os.sep in command or not os.path.isfile(command):
        return None
    program = f"python {command}" if command.endswith(".py") else f"./{command}"
    return f"it is in this folder, and not in PATH: zeusm {name} {program}"


def environment_for(runtime: zeusm.Runtime) -> dict[str, str]:
    """Return this process's environment with what programs need to find the runtime first, and to use it as zeusm does."""
    environment = dict(os.environ)
    if runtime.kind == "system":
        return environment
    if runtime.path.name != LOADER:
        raise ValueError(
            f"other processes find a Level Zero library by its file's name, {LOADER}, and the runtime is {runtime.path}"
        )
    joined(environment, PATHS, str(runtime.path.parent), environment.get(PATHS))
    if runtime.kind == "cpu":
        joined(environment, OPENCL, environment.get(OPENCL), str(runtime.path))
    return DEFAULTS | environment


def joined(environment: dict[str, str], variable: str, *paths: str | None) -> None:
    environment[variable] = ":".join(path for path in paths if path)


def failure(name: str, reason: object, status: int) -> int:
    print(f"zeusm {name}: {reason}", file=sys.stderr)
    return status
