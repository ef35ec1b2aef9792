"""Cases over two compilers and two runtimes, and whose a wrong result is.

Each runs by Level Zero on the CPU runtime and by OpenCL without it, over Intel's OpenCL and over PoCL. The results are compared with
NumPy's, and so with each other.
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
        outcomes = {}
        for compiler in (INTEL, POCL):
            for device in (OURS, THEIRS):

                def command(names, _, compiler=compiler, device=device):
                    return self.command(compiler, device, file_of(names))

                results = dict(processes.run(command, names, limit, MARKS, log))
                outcomes[compiler, device] = results
        judged = {name: verdict({key: outcomes[key][name] for key in outcomes}) for name in names}
        for name, found in judged.items():
            if found != PASSED:
                each = ", ".join(f"{' '.join(key)} {outcomes[key][name]}" for key in outcomes)
                log.write(f"deviation: {name}: {found} ({each})\n".encode())
        counts = Counter(judged.values()).most_common()
        print(f"{self.module}:", ", ".join(f"{count} {found}" for found, count in counts))
        yield from judged.items()


def verdict(outcomes):
    """Whose a deviation is: of the runtime if OpenCL alone is right with the same compiler; of one compiler, if the other is right."""
    bad = {key: outcome for key, outcome in outcomes.items() if outcome != PASSED}
    if not bad:
        return PASSED
    if any((name, OURS) in bad and (name, THEIRS) not in bad for name in (INTEL, POCL)):
        return "zeusm"
    ours = {name: bad[name, OURS] for name in (INTEL, POCL) if (name, OURS) in bad}
    if not ours:
        return "opencl:cpu only"
    if len(ours) == 2:
        return "undecided" if REFUSED in ours.values() else "the library"
    if INTEL in ours:
        return "Intel's OpenCL is wrong"
    ends = {REFUSED: "PoCL lacks it", DIED: "PoCL ends the process", HUNG: "PoCL ends the process"}
    return ends.get(ours[POCL], "PoCL is wrong")
