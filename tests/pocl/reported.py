"""A plugin of pytest: a line when a test begins, and one with its result when it has ended."""

import sys

results = {}


def write(*words):
    # Captured output goes elsewhere.
    print("\n" + " ".join(words), file=sys.__stdout__, flush=True)


def pytest_runtest_logstart(nodeid):
    write("[begun]", nodeid)


def pytest_runtest_logreport(report):
    # What fails in a fixture has failed, too.
    if report.when == "setup":
        results[report.nodeid] = "passed"
    if report.outcome != "passed":
        results[report.nodeid] = report.outcome
    # Here, too, as a later test may end the process before pytest's own report.
    if report.failed:
        write("\n".join(report.longreprtext.splitlines()[-20:]))


def pytest_runtest_logfinish(nodeid):
    write("[ended]", results.pop(nodeid), nodeid)
