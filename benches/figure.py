"""Draws the results of run.py: zeusm's time relative to its peers'.

    python benches/figure.py [DIRECTORY]

Reads the newest results in the directory, and writes comparison.svg and comparison.png to it: a panel for each peer, with the
goals that are missed in red.
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
MISSED = "#c00020"
NAMES = {
    "dpctl": "dpctl, on the same runtime",
    "OpenCL": "dpctl on opencl:cpu",
    "NumPy": "numpy.empty",
    "libc": "memcpy",
    "bytearray": "memoryview(bytearray)",
}


def groups(result, peer):
    """Each group with a goal against the peer: the goal, and the sorted ratios of the figures."""
    for goal in result["goals"]:
        if goal["peer"] == peer:
            of = [figure for figure in result["figures"] if figure["group"] == goal["group"]]
            yield goal, sorted(figure["ratios"][peer]["median"] for figure in of)


def draw_peer(axes, peer, rows):
    """One panel: a line for each group, from its best to its worst figure, and its goal."""
    for height, (goal, ratios) in enumerate(reversed(rows)):
        axes.plot(
            [ratios[0], ratios[-1]],
            [height] * 2,
            color=COLOURS[peer],
            lw=5,
            alpha=0.35,
            solid_capstyle="round",
        )
        axes.plot(ratios, [height] * len(ratios), "o", color=COLOURS[peer], ms=4)
        colour = "black" if goal["reached"] else MISSED
        axes.plot(goal["bound"], height, "|", color=colour, ms=11, mew=1.5)
    axes.axvline(1, color="grey", lw=0.8, ls=":")
    axes.set_yticks(range(len(rows)), [label(goal) for goal, _ in reversed(rows)])
    for tick, (goal, _) in zip(axes.get_yticklabels(), reversed(rows), strict=True):
        tick.set_color("black" if goal["reached"] else MISSED)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_title(f"beside {NAMES[peer]}", loc="left", fontsize=9, color=COLOURS[peer])
    axes.grid(axis="y", lw=0.4, color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label(goal):
    if goal["reached"]:
        return goal["group"]
    return f"{goal['group']}: {goal['worst']:.2f}, goal {goal['bound']:g} missed"


def draw(result):
    panels = [(peer, rows) for peer in COLOURS if (rows := list(groups(result, peer)))]
    count = sum(len(rows) for _, rows in panels)
    figure, all_axes = plt.subplots(
        len(panels),
        figsize=(9.5, 0.27 * count + 0.45 * len(panels) + 1.3),
        height_ratios=[len(rows) + 0.5 for _, rows in panels],
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for axes, (peer, rows) in zip(all_axes[:, 0], panels, strict=True):
        draw_peer(axes, peer, rows)
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(
        "zeusm's time divided by the peer's, on a logarithmic axis; to the left is better"
    )
    marks = [
        axes.plot([], [], "o", color="#555555", label="a kind of memory, or a size")[0],
        axes.plot([], [], "|", color="black", ms=11, mew=1.5, label="goal")[0],
        axes.plot([], [], "|", color=MISSED, ms=11, mew=1.5, label="goal that is missed")[0],
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(caption(result), fontsize=7, color="#444444")
    return figure


def caption(result):
    machine, processes = result["machine"], result["processes"]
    versions = ", ".join(f"{name} {machine['packages'][name]}" for name in ("zeusm", "dpctl"))
    return (
        f"{versions}; {machine['processor']}, {machine['processors']} processors; "
        f"{machine['date'][:10]}, load {machine['load_before']} before; medians of {processes} process{'es' * (processes > 1)}"
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
