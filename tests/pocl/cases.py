"""Runs cases on a device: cases.py MODULE DEVICE [FILE]. Without a file, which has a name in each line, it lists them.

It ends a case with `right`, `wrong` or, if the call raises an error, `refused`.
"""

import importlib
import sys
import traceback
import warnings

# Before SYCL lists its devices, so that its runtime serves those of Level Zero.
import zeusm.memory  # noqa: F401

# isort: split
import dpctl

warnings.simplefilter("ignore")


def result(case, device):
    try:
        return "right" if case(device) else "wrong"
    except Exception:
        traceback.print_exc(limit=1)
        return "refused"


def main(module, device, names=None):
    cases = importlib.import_module(module).CASES
    if names is None:
        print(*cases, sep="\n")
        return
    # A device that is missing must not look as if it refused each case.
    dpctl.SyclDevice(device)
    with open(names) as lines:
        chosen = lines.read().splitlines()
    for name in chosen:
        print("[begun]", name, flush=True)
        print("[ended]", result(cases[name], device), name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
