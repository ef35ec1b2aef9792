"""`zeusm status`: whether zeusm is enabled in this environment."""

import os
from argparse import Namespace

import zeusm_start

from zeusm._commands.enable import files

NAME = "status"
HELP = "Say whether zeusm is enabled in this environment; the exit status is 0 if it is, else 1."


def call(_options: Namespace) -> int:
    paths = files()
    for path in paths:
        print(f"zeusm is enabled by {path}")
    if not paths:
        print("zeusm is not enabled")
    is_off = zeusm_start.is_off()
    if is_off:
        value = os.environ[zeusm_start.VARIABLE]
        print(f"{zeusm_start.VARIABLE}={value} disables it for this process")
    return 0 if paths and not is_off else 1
