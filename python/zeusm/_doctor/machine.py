"""The machine that is examined; tests have others."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: In seconds. A driver that does not answer must not block the doctor.
TIMEOUT = 60
#: Its number, as Windows' module `signal` has no such name.
SIGKILL = 9
#: The first exit status of Windows for an error that a program does not handle.
EXCEPTIONS = 0xC000_0000
#: The folder that zeusm is imported from.
PACKAGES = Path(__file__).absolute().parents[2]


@dataclass(frozen=True)
class Machine:
    """Files, environment variables, and a Python interpreter."""

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    #: The folder of the Python environment.
    prefix: Path = Path(sys.prefix)
    #: The version of Python.
    python: tuple[int, int] = sys.version_info[:2]

    @property
    def libraries(self) -> Path:
        """The folder of the environment into which packages put their libraries."""
        return self.prefix / "lib"

    def path(self, name: str) -> Path:
        """Return the path of a file, which is given from the root."""
        return self.root / name.lstrip("/")

    def read(self, name: str | Path) -> str | None:
        """Return the text of a file, or None if it cannot be read."""
        path = self.path(name) if isinstance(name, str) else name
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def unset(self, variable: str) -> str:
        """Return the command that unsets an environment variable."""
        return f"unset {variable}"

    def import_remedy(self, _error: str) -> str | None:
        """Return the command after which a package of SYCL can be imported, where the system's way to find libraries prevents it."""
        return None

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program in a new process, as libraries may abort it. Files of the current folder are no modules for it."""
        here = current_folder()
        safe_path = [] if here == PACKAGES else ["-P"]
        # Otherwise paths in its errors have the encoding of the locale, or of Windows' code page.
        command = [sys.executable, *safe_path, "-X", "utf8", "-c", program]
        try:
            return subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=TIMEOUT,
                env=dict(self.environment),
                # Where it does not exist, dpctl does not end; one that cannot be searched is only inherited.
                cwd=None if here else "/",
                check=False,
            )
        except subprocess.TimeoutExpired:
            message = f"no answer within {TIMEOUT} seconds"
            return subprocess.CompletedProcess(command, 1, "", message)


def current_folder() -> Path | None:
    """Return the current folder, or None if it does not exist or cannot be read."""
    try:
        return Path.cwd()
    except OSError:
        return None


def last_line(run: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a program's errors, or how it ended."""
    lines = run.stderr.strip().splitlines()
    if crash := what_ended(run.returncode):
        return crash + (f" after: {lines[-1]}" if lines else "")
    return lines[-1] if lines else f"exit status {run.returncode}"


def what_ended(status: int) -> str | None:
    """Return the signal, or Windows' exception, that has ended a program."""
    if status >= EXCEPTIONS:
        return f"exception {status:#x}"
    killed = ", as the kernel's OOM killer sends" if status == -SIGKILL else ""
    return f"signal {-status}{killed}" if status < 0 else None
