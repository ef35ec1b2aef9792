"""The lists and columns of the file format, made of the rows of a history's state."""

TYPE_CHECKING = False  # The import of zeusm does without typing.
if TYPE_CHECKING:
    from typing import Any
else:  # Annotations can be evaluated.
    Any = object

FORMAT = "zeusm-memory-history"
VERSION = 1
KINDS = ["host", "device", "shared"]
#: An action is its index.
ACTIONS = ["allocate", "free", "reserve", "release", "trim", "fail"]
#: The index of nothing.
NONE = -1


def columns(rows: dict[str, Any]) -> dict[str, Any]:
    """Return the tables by column, and the lists that their rows refer to by index."""
    devices = {handle: index for index, (handle, *_) in enumerate(rows["devices"])}
    stacks = {number: index for index, (number, _) in enumerate(rows["stacks"])}
    pools, columns_of_places = places(rows["places"], devices)

    def table(name: str, *names: str) -> dict[str, list[Any]]:
        found = transposed(rows[name], names)
        for column, indices in (("stack", stacks), ("handle", devices)):
            if column in found:
                found[column] = [indices.get(value, NONE) for value in found[column]]
        if "place" in found:
            of = found.pop("place")
            found |= {name: [column[at] for at in of] for name, column in columns_of_places.items()}
        return found

    operations = table("operations", "time", "duration", "name", "size", "handle", "queue")
    operations["device"] = operations.pop("handle")
    dropped, dropped_operations = rows["dropped"]
    return {
        "clock": {"start": rows["start"]},
        "devices": [
            {"name": name, "index": index, "total": total}
            for index, (_, name, total) in enumerate(rows["devices"])
        ],
        "kinds": KINDS,
        "pools": pools,
        "threads": records(rows["threads"], "id", "name"),
        **frames(rows["frames"]),
        "stacks": [indices for _, indices in rows["stacks"]],
        "actions": ACTIONS,
        "events": table(
            *("events", "time", "action", "address", "size", "place", "thread", "stack", "hit")
        ),
        "failures": records(rows["failures"], "event", "message", "cached", "in_use", "free"),
        "blocks": table("blocks", "address", "size", "place", "stack", "time"),
        "slabs": table("slabs", "address", "size", "place", "used", "block"),
        "operations": operations,
        "dropped": dropped,
        "dropped_operations": dropped_operations,
    }


def places(
    rows: list[tuple[int, int, int, int]], devices: dict[int, int]
) -> tuple[list[dict[str, int]], dict[str, list[int]]]:
    """Return the pools, and what a table has of each place: its kind, its device and its pool."""
    contexts: dict[int, int] = {}
    numbers: dict[int, int] = {0: NONE}
    pools: list[dict[str, int]] = []
    for kind, device, context, pool in rows:
        at = contexts.setdefault(context, len(contexts))
        if pool not in numbers:
            numbers[pool] = len(pools)
            pools.append({"kind": kind, "device": devices.get(device, NONE), "context": at})
    return pools, {
        "kind": [kind for kind, *_ in rows],
        "device": [devices.get(device, NONE) for _, device, *_ in rows],
        "pool": [numbers[pool] for *_, pool in rows],
    }


def frames(rows: list[tuple[str, int, str]]) -> dict[str, Any]:
    """Return the frames, and the names of their files and functions in the order of the first use."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    found = {
        "file": [files.setdefault(file, len(files)) for file, _, _ in rows],
        "line": [line for _, line, _ in rows],
        "function": [functions.setdefault(name, len(functions)) for _, _, name in rows],
    }
    return {"files": list(files), "functions": list(functions), "frames": found}


def records(rows: list[tuple[Any, ...]], *names: str) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def transposed(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> dict[str, list[Any]]:
    values = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, values, strict=True))
