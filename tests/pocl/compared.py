"""Cases over two compilers and two runtimes, and whose a wrong result is.

Each runs by Level Zero on the CPU runtime, over Intel's OpenCL and over PoCL, and where it is not right by OpenCL alone, too. The
results are compared with NumPy's, and so with each other.
"""

import re
from collections import Counter

import processes
from processes import DIED, FAILED, HUNG, PASSED
from programs import file_of, output
from root import PROJECT

REFUSED = "refused"
MARKS = processes.Marks(
    begun=re.compile(rb"^\[begun\] (?P<name>.+)$", re.MULTILINE),
    ended=re.compile(rb"^\[ended\] (?P<result>\w+) (?P<name>.+)$", re.MULTILINE),
    results={b"right": PASSED, b"wrong": FAILED, b"refused": REFUSED},
)
OURS, THEIRS = "level_zero:gpu", "opencl:cpu"
INTEL, POCL = "Intel", "PoCL"


class Compared:
    """The cases of a module, in an environment."""

    def __init__(self, environment, module, **variables):
        self.environment, self.module, self.variables = PROJECT / environment, module, variables

    def prepare(self, root):
        self.root = root
        return output(self.command(INTEL, OURS)).splitlines()

    def command(self, compiler, device, *words):
        """What runs cases, or lists them."""
        intel = self.environment / "lib/libintelocl.so"
        found = {
            "OCL_ICD_FILENAMES": intel,
            "OCL_ICD_VENDORS": intel,
            "ZEUSM_OPENCL_LIBRARY": intel,
        }
        variables = self.variables | (found if compiler == INTEL else {})
        start = [self.environment / "bin/python", PROJECT / "tests/pocl/cases.py"]
        return self.root.command(*start, self.module, device, *words, **variables)

    def run(self, names, limit, log):
        """By Level Zero all, and by OpenCL those that are not right by Level Zero."""
        outcomes = {}
        for compiler in (INTEL, POCL):
            ours = self.results(compiler, OURS, names, limit, log)
            wrong = [name for name in names if ours[name] != PASSED]
            theirs = self.results(compiler, THEIRS, wrong, limit, log)
            for name in wrong:
                outcomes.setdefault(name, {})[compiler] = ours[name], theirs[name]
        for name, found in outcomes.items():
            log.write(f"deviation: {name}: {verdict(found)} {found}\n".encode())
        judged = {name: verdict(outcomes.get(name, {})) for name in names}
        counts = Counter(judged.values()).most_common()
        print(f"{self.module}:", ", ".join(f"{count} {found}" for found, count in counts))
        yield from judged.items()

    def results(self, compiler, device, names, limit, log):
        def command(names, _):
            return self.command(compiler, device, file_of(names))

        return dict(processes.run(command, names, limit, MARKS, log))


def verdict(found):
    """Whose a deviation is: the runtime's if OpenCL alone is right with the same compiler, or one compiler's if the other is right.

    `found` has the result by Level Zero and that by OpenCL for each compiler with which the former is not right.
    """
    if not found:
        return PASSED
    if any(theirs == PASSED for _, theirs in found.values()):
        return "zeusm"
    ours = {compiler: result for compiler, (result, _) in found.items()}
    if len(ours) == 2:
        return "undecided" if REFUSED in ours.values() else "the library"
    if INTEL in ours:
        return "Intel's OpenCL is wrong"
    ends = {REFUSED: "PoCL lacks it", DIED: "PoCL ends the process", HUNG: "PoCL ends the process"}
    return ends.get(ours[POCL], "PoCL is wrong")
