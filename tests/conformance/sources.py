"""Builds the loader and the core of the official tests beside their sources."""

import re
import shutil
import subprocess
from pathlib import Path

# Debian's googletest has its sources there. They are built with the tests, whose macros change its headers.
GOOGLETEST = Path("/usr/src/googletest")
# The tests do more with the host's processor than the runtime does: without optimisation some are slower by ten times.
OPTIONS = ["-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
# The folder of their sources, and of their makefiles.
CORE = Path("conformance_tests/core")
NEEDED = (
    "cmake libboost-all-dev (1.79 or later; Debian 12: libboost1.81-all-dev) libpng-dev googletest"
)


class Tests:
    """The built tests, below the folder with the sources `level-zero` and `level-zero-tests`."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.loader, self.source = self.folder / "level-zero", self.folder / "level-zero-tests"
        self.prefix, self.programs = self.folder / "prefix", self.folder / "out"

    def build(self, jobs, areas):
        """Build what is missing or older than its source: the programs of these areas, or all."""
        for source in (self.loader, self.source):
            if not (source / "CMakeLists.txt").exists():
                raise SystemExit(f"{self.folder} has no sources of {source.name}.")
        self._cmake(self.loader, "loader", jobs, [f"-DCMAKE_INSTALL_PREFIX={self.prefix}"], ["."])
        options = [
            "-DGROUP=/conformance_tests/core",
            f"-DLevelZero_ROOT={self.prefix}",
            f"-DGTEST_ROOT={self._googletest()}",
            f"-DCMAKE_INSTALL_PREFIX={self.programs}",
        ]
        parts = sorted({CORE / self._part(area) for area in areas}) or ["."]
        self._cmake(self.source, "tests", jobs, options, parts)

    def _part(self, area):
        """The folder of an area's sources, which has several programs at times: `test_ipc` has `ipc_memory`."""
        names = [path.name for path in (self.source / CORE).iterdir()]
        return max(filter(f"test_{area}".startswith, names), key=len, default=".")

    def _googletest(self):
        """A copy of its sources, since the tests build it in their folder."""
        copy = self.folder / "googletest"
        if not copy.exists():
            if not GOOGLETEST.exists():
                raise SystemExit(f"{GOOGLETEST} is missing. The tests need {NEEDED}.")
            shutil.copytree(GOOGLETEST, copy)
        return copy

    def _cmake(self, source, name, jobs, options, parts):
        """Configure; then build and install these folders, of which each has a makefile of its own."""
        folder = self.folder / "build" / name
        configure = ["cmake", "-S", source, "-B", folder, *OPTIONS, *options]
        install = [["make", "-C", folder / part, f"-j{jobs}", "install"] for part in parts]
        log = self.folder / f"{name}.log"
        with open(log, "w") as output:
            for command in (configure, *install):
                if subprocess.run(command, stdout=output, stderr=output).returncode:
                    raise SystemExit(f"{name} cannot be built ({log}). It needs {NEEDED}.")

    def versions(self):
        """What the sources say of themselves: the loader's release and the tests' commit."""
        release = re.search(
            r"project\(level-zero VERSION ([\d.]+)", (self.loader / "CMakeLists.txt").read_text()
        )
        commit = ["git", "-C", self.source, "rev-parse", "--short", "HEAD"]
        found = subprocess.run(commit, capture_output=True, text=True).stdout.strip()
        return f"level-zero-tests {found or 'without git'}, loader {release[1] if release else 'unknown'}"
