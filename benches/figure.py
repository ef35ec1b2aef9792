"""Draws the results of run.py: zeusm's time relative to its peers'.

    python benches/figure.py [DIRECTORY]

Reads the newest results in the directory, and writes comparison.svg and comparison.png to it.
"""

import json
import pathlib
import sys

import matplotlib as mpl

mpl.use("Agg")
mpl.rcParams.update({"svg.hashsalt": "zeusm", "font.family": "DejaVu Sans", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).parent
COLOURS = {
    "dpctl": "#0068b5",
    "OpenCL": "#b24501",
    "NumPy": "#2b7a3d",
    "libc": "#6f4a9c",
    "bytearray": "#7a7a7a",
}
NAMES = {
    "dpctl": "dpctl, on the same runtime",
    "OpenCL": "dpctl on opencl:cpu",
    "NumPy": "numpy.empty",
    "libc": "memcpy",
    "bytearray": "memoryview(bytearray)",
}


def groups(result):
    """Each group with a goal against a peer: the goal, and the sorted ratios of the figures."""
    for goal in result["goals"]:
        if goal["peer"]:
            of = [figure for figure in result["figures"] if figure["group"] == goal["group"]]
            yield goal, sorted(figure["ratios"][goal["peer"]]["median"] for figure in of)


def draw(result):
    rows = list(groups(result))
    figure, axes = plt.subplots(figsize=(8.5, 0.27 * len(rows) + 1.5), layout="constrained")
    for height, (goal, ratios) in enumerate(reversed(rows)):
        colour = COLOURS[goal["peer"]]
        axes.plot(
            [ratios[0], ratios[-1]],
            [height] * 2,
            color=colour,
            lw=5,
            alpha=0.35,
            solid_capstyle="round",
        )
        axes.plot(ratios, [height] * len(ratios), "o", color=colour, ms=4)
        axes.plot(goal["bound"], height, "|", color="black", ms=11, mew=1.5)
    axes.axvline(1, color="grey", lw=0.8, ls=":")
    axes.set_yticks(range(len(rows)), [goal["group"] for goal, _ in reversed(rows)])
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", lw=0.4, color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_xlabel("zeusm's time divided by the peer's; to the left is better")
    axes.spines[["top", "right"]].set_visible(False)
    peers = {goal["peer"] for goal, _ in rows}
    marks = [
        axes.plot([], [], "o", color=COLOURS[peer], label=NAMES[peer])[0]
        for peer in COLOURS
        if peer in peers
    ]
    marks += axes.plot([], [], "|", color="black", ms=11, mew=1.5, label="goal")
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(caption(result), fontsize=7, color="#444444")
    return figure


def caption(result):
    machine, processes = result["machine"], result["processes"]
    versions = ", ".join(f"{name} {machine['packages'][name]}" for name in ("zeusm", "dpctl"))
    return (
        f"{versions}; {machine['processor']}, {machine['processors']} processors; "
        f"{machine['date'][:10]}, load {machine['load_before']} before; medians of {processes} process{'es' * (processes > 1)}, a dot for each kind and size"
    )


def main():
    directory = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "results"
    results = [json.loads(path.read_text()) for path in directory.glob("*.json")]
    result = max(results, key=lambda result: result["machine"]["date"])
    figure = draw(result)
    figure.savefig(directory / "comparison.svg", metadata={"Date": None})
    figure.savefig(directory / "comparison.png", dpi=150)


if __name__ == "__main__":
    main()
