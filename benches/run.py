"""Runs each benchmark in several processes; prints medians, ratios and their spread, and writes them to a file.

python benches/run.py [--processes N] [--output DIRECTORY | --write] [program ...]

The file is named after the processor's make, because a goal can be reached on one make and missed on another. With --write, a
run of some programs replaces their figures in it, and is added to its list of such runs.
"""

import argparse
import collections
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

import compare
import goals

HERE = pathlib.Path(__file__).parent
COMMITTED = HERE / "results"
MAKES = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
PROGRAMS = {
    **{
        name: [sys.executable, HERE / f"{name}.py"]
        for name in (
            "memory",
            "allocator",
            "exchange",
            "in_place",
            "suspend",
            "copies",
            "process",
            "kernels",
            "live",
            "ipc",
        )
    },
    "scale": ["cargo", "bench", "--quiet", "--locked", "--bench", "scale"],
}
PACKAGES = ("zeusm", "dpctl", "dpnp", "numpy", "umf")


def machine():
    """The machine, the versions and the time of the run."""
    with open("/proc/cpuinfo") as file:
        fields = [line.split(":") for line in file if ":" in line]
    processor = {name.strip(): value.strip() for name, value in fields}
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "make": MAKES.get(processor.get("vendor_id"), "other"),
        "processor": processor.get("model name", platform.machine()),
        "processors": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        # A high load shows that other processes used the machine, and that the figures are unreliable.
        "load_before": round(os.getloadavg()[0], 2),
    }


def records(program):
    """The records of one process of the benchmark."""
    command = subprocess.run(
        PROGRAMS[program], cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True
    )
    return [json.loads(line) for line in command.stdout.splitlines() if line.startswith("{")]


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def gather(programs, processes):
    """Each figure with the values of the peers and zeusm's ratios to them, summarised over the processes."""
    found = collections.defaultdict(list)
    for number in range(processes):
        for program in programs:
            print(f"{program}, process {number + 1} of {processes}", file=sys.stderr, flush=True)
            for record in records(program):
                found[record["group"], record["name"], record["unit"]].append(record["values"])
    return [
        {"group": group, "name": name, "unit": unit, **summary(each)}
        for (group, name, unit), each in found.items()
    ]


def summary(each):
    """Median, minimum and maximum over the processes."""
    peers = each[0].keys()
    ratios = {peer: [values["zeusm"] / values[peer] for values in each] for peer in peers}
    del ratios["zeusm"]
    return {
        "values": {peer: spread([values[peer] for values in each]) for peer in peers},
        "ratios": {peer: spread(ratio) for peer, ratio in ratios.items()},
    }


def shown(value, unit):
    if unit != "s":
        return f"{value:.4g} {unit}"
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s"


def table(figures):
    for figure in figures:
        values = "".join(
            f"{peer:>8} {shown(value['median'], figure['unit']):<9}"
            for peer, value in figure["values"].items()
        )
        ratios = ", ".join(
            f"{goals.shown(ratio['median'])} ({goals.shown(ratio['least'])} to {goals.shown(ratio['most'])}) of {peer}"
            for peer, ratio in figure["ratios"].items()
        )
        yield f"{figure['group']:<34}{figure['name']:<30}{values}  {ratios}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=5)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=pathlib.Path, help="the folder of the results")
    where.add_argument("--write", action="store_true", help="replace the committed results")
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], metavar="program")
    arguments = parser.parse_args()
    result = {
        "machine": machine(),
        "processes": arguments.processes,
        "rounds": compare.ROUNDS,
    }
    result["figures"] = gather(arguments.programs or PROGRAMS, arguments.processes)
    before = committed().get(result["machine"]["make"])
    if arguments.write and arguments.programs and before:
        result = added(before, result, arguments.programs)
    result["goals"] = list(goals.judge(result["figures"]))
    print(json.dumps(result["machine"], ensure_ascii=False, indent=1))
    results = {**committed(), result["machine"]["make"]: result}
    print(*table(result["figures"]), "", *goals.table(results), sep="\n")
    folder = COMMITTED if arguments.write else arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, ensure_ascii=False, indent=1)
    (folder / f"{result['machine']['make']}.json").write_text(text + "\n")


def added(before, result, programs):
    """A committed result with the figures of a later run of some programs."""
    groups = {figure["group"] for figure in result["figures"]}
    run = {name: result["machine"][name] for name in ("date", "processor", "load_before")}
    others = [figure for figure in before["figures"] if figure["group"] not in groups]
    runs = [*before.get("later", []), {**run, "programs": programs}]
    return {**before, "later": runs, "figures": others + result["figures"]}


def committed():
    """The committed results, by the make of the processor."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(COMMITTED.glob("*.json"))}


if __name__ == "__main__":
    main()
