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


GOALS = (
    ("allocate and free by a pool", Goal(1.0, "NumPy")),
    ("allocate and free 64 B to 1 MiB", Goal(1.3, "NumPy")),
    ("allocate and free 64 MiB", Goal(0.25, "dpctl")),
    ("allocate or free by C code", Goal(150e-9)),
    ("read __sycl_usm_array_interface__", Goal(1.0, "dpctl")),
    ("memoryview", Goal(1.15, "bytearray")),
    ("take in a context capsule", Goal(0.15, "dpctl")),
    ("wrap the other's object", Goal(0.25, "dpctl")),
    ("be wrapped by dpctl", Goal(1.0, "dpctl")),
    ("__dlpack__", Goal(200e-9)),
    ("from_dlpack", Goal(1e-6)),
    ("from_dlpack of dpnp's array", Goal(1.0, "dpnp")),
    ("pass to a function of tvm-ffi", Goal(1.6, "tvm-ffi")),
    ("memory of the host as USM", Goal(0.5, "dpctl")),
    ("resident memory of a suspended pool", Goal(0.05)),
    ("copy 64 B", Goal(0.2, "dpctl")),
    ("copy 1 MiB", Goal(0.75, "libc")),
    ("copy between kinds 1 MiB", Goal(0.75, "libc")),
    ("copy 4 MiB", Goal(1.05, "dpctl")),
    ("copy 16 MiB", Goal(1.05, "dpctl")),
    ("copy between kinds 4 MiB", Goal(1.05, "dpctl")),
    ("copy between kinds 16 MiB", Goal(1.05, "dpctl")),
    ("copy 64 MiB", Goal(1.0, "OpenCL")),
    ("copy 512 MiB", Goal(1.0, "OpenCL")),
    ("copy between kinds 64 MiB", Goal(1.0, "OpenCL")),
    ("copy between kinds 512 MiB", Goal(1.0, "OpenCL")),
    ("memset 1 MiB", Goal(1.0, "OpenCL")),
    ("memset 64 MiB", Goal(1.0, "OpenCL")),
    ("memset 512 MiB", Goal(1.0, "OpenCL")),
    ("resident bytes beyond 64 B", Goal(48)),
    ("import", Goal(0.003)),
    ("first kernel of a process", Goal(0.3, "OpenCL")),
    ("two threads", Goal(1.7, sense="at least")),
    ("two threads, large blocks", Goal(1.7, sense="at least")),
    ("sixteen threads", Goal(0.9, sense="at least")),
    ("growth", Goal(1.2)),
    ("snapshot of 10^6 blocks", Goal(0.5)),
    ("fragmentation", Goal(1.10)),
    ("launch an empty kernel", Goal(1.0, "OpenCL")),
    ("launch ten empty kernels", Goal(0.7, "OpenCL")),
    ("compute", Goal(1.0, "OpenCL")),
    ("chain of ten kernels", Goal(0.9, "OpenCL")),
)


def judge(figures):
    """The best and the worst figure of each measured group with a goal, and whether all its figures reach the goal."""
    for group, goal in GOALS:
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


def shown(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3g}"


def table(results):
    """A line for each goal, with the makes of processor on which it was reached, and one for its figures on each."""
    for group, goal in GOALS:
        verdicts = {
            make: verdict
            for make, result in results.items()
            for verdict in result["goals"]
            if verdict["group"] == group
        }
        if not verdicts:
            continue
        to = f" of {goal.peer}" if goal.peer else ""
        where = ", ".join(
            f"{'reached' if verdict['reached'] else 'NOT reached'} on {make}"
            for make, verdict in verdicts.items()
        )
        yield f"{group}: {goal.sense} {goal.bound}{to}: {where}"
        for make, verdict in verdicts.items():
            worst = f" ({verdict['worst figure']})" if verdict["worst figure"] else ""
            yield f"    {make:<6}{shown(verdict['best'])} to {shown(verdict['worst'])}{worst}"
