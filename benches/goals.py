"""The goals of zeusm by group of figures."""

import operator
from typing import NamedTuple


class Goal(NamedTuple):
    """A bound of zeusm's value, or of its ratio to a peer's value."""

    bound: float
    peer: str | None = None
    sense: str = "at most"

    def value(self, figure):
        """The median that the bound applies to."""
        return (figure["ratios"][self.peer] if self.peer else figure["values"]["zeusm"])["median"]

    def keeps(self, value):
        return {"at most": operator.le, "at least": operator.ge}[self.sense](value, self.bound)


GOALS = {
    "allocate and free 64 B to 1 MiB": Goal(0.25, "dpctl"),
    "allocate and free 64 MiB": Goal(0.25, "dpctl"),
    "read __sycl_usm_array_interface__": Goal(1.0, "dpctl"),
    "memoryview": Goal(0.4, "dpctl"),
    "take in a context capsule": Goal(0.15, "dpctl"),
    "wrap the other's object": Goal(0.25, "dpctl"),
    "be wrapped by dpctl": Goal(1.0, "dpctl"),
    "copy 64 B": Goal(0.2, "dpctl"),
    "copy 1 MiB": Goal(0.85, "dpctl"),
    "copy 64 MiB": Goal(1.0, "OpenCL"),
    "copy 512 MiB": Goal(1.0, "OpenCL"),
    "copy between kinds 64 MiB": Goal(1.0, "OpenCL"),
    "copy between kinds 512 MiB": Goal(1.0, "OpenCL"),
    "memset 64 MiB": Goal(1.0, "OpenCL"),
    "memset 512 MiB": Goal(1.0, "OpenCL"),
    "resident bytes beyond 64 B": Goal(0.3, "dpctl"),
    "import": Goal(0.3, "dpctl"),
    "two threads": Goal(1.7, sense="at least"),
    "growth": Goal(1.2),
    "fragmentation": Goal(1.25),
    "launch an empty kernel": Goal(1.5, "OpenCL"),
    "compute": Goal(1.1, "OpenCL"),
}


def judge(figures):
    """The best and the worst figure of each measured group with a goal, and whether all its figures reach the goal."""
    for group, goal in GOALS.items():
        of = {figure["name"]: goal.value(figure) for figure in figures if figure["group"] == group}
        if of:
            names = sorted(of, key=of.get, reverse=goal.sense == "at least")
            yield {
                "group": group,
                **goal._asdict(),
                "best": of[names[0]],
                "worst": of[names[-1]],
                "worst figure": names[-1],
                "reached": goal.keeps(of[names[-1]]),
            }


def table(results):
    """A line for each verdict on each make of processor."""
    verdicts = [(verdict, make) for make, result in results.items() for verdict in result["goals"]]
    for group, goal in GOALS.items():
        if not any(verdict["group"] == group for verdict, _ in verdicts):
            continue
        to = f" of {goal.peer}" if goal.peer else ""
        yield f"{group}: {goal.sense} {goal.bound}{to}"
        for verdict, make in verdicts:
            if verdict["group"] == group:
                reached = "reached" if verdict["reached"] else "NOT reached"
                worst = f" ({verdict['worst figure']})" if verdict["worst figure"] else ""
                yield f"    {make:<6}{verdict['best']:.2f} to {verdict['worst']:.2f}{worst}: {reached}"
