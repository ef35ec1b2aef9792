"""What a wheel says of the crates in it: lists of them (CycloneDX), and their licences.

maturin lists the crates of the module with a random number, the time and the folder of the build; here these are removed,
so that two builds of the same sources have the same list. The list of the CPU runtime's crates and the texts of all
licences are made from `cargo metadata` and the crates' folders.
"""

import json
import re
import subprocess
from pathlib import Path

CRATES = ["zeusm-python", "zeusm-cpu"]
LICENSE = re.compile(r"(?i)(licen[cs]e|copying|notice|unlicense)")
LINUX = "x86_64-unknown-linux-gnu"


def metadata(root, target=LINUX):
    """The output of cargo."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    output = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def linked(found, crate):
    """The packages that a crate of the workspace links, by their ids: those below it, without build dependencies."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node["deps"] for node in found["resolve"]["nodes"]}
    members = found["workspace_members"]
    todo = [each for each in members if packages[each]["name"] == crate]
    below = {}
    while todo:
        package = todo.pop()
        if package in below:
            continue
        deps = nodes[package]
        needed = [it["pkg"] for it in deps if any(kind["kind"] is None for kind in it["dep_kinds"])]
        below[package] = needed
        todo += needed
    return {
        package: (packages[package], below[package])
        for package in sorted(below, key=lambda each: name(packages[each]))
    }


def name(package):
    return f"{package['name']}@{package['version']}"


def sbom(crates, crate):
    """A CycloneDX list of the packages below a crate."""

    def component(package):
        return {
            "type": "library",
            "bom-ref": name(package),
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            "purl": f"pkg:cargo/{name(package)}",
        }

    components = [component(package) for package, _ in crates.values()]
    own = next(each for each in components if each["name"] == crate)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": [each for each in components if each is not own],
        "dependencies": [
            {"ref": name(package), "dependsOn": sorted(name(crates[each][0]) for each in below)}
            for package, below in crates.values()
        ],
    }


def normal(text, root):
    """maturin's list without what differs between builds."""
    listed = json.loads(text.replace(f"file://{root}", "file://."))
    listed.pop("serialNumber", None)
    listed["metadata"].pop("timestamp", None)
    return json.dumps(listed, indent=2)


def licences(crates):
    """The licences of packages that are not of the workspace, each text once. MIT's is enough where there is a choice."""
    texts = {}
    for package, _ in crates.values():
        if package["source"] is None:
            continue
        folder = Path(package["manifest_path"]).parent
        files = [
            path for path in sorted(folder.iterdir()) if path.is_file() and LICENSE.match(path.name)
        ]
        # With AND each of them counts.
        if " OR " in package["license"] and " AND " not in package["license"]:
            files = [path for path in files if "MIT" in path.name.upper()] or files
        head = f"{name(package)} ({package['license']})"
        text = "\n".join(path.read_text(errors="replace").strip() for path in files)
        texts.setdefault(text, []).append(head)
    parts = [
        "\n".join(heads)
        + "\n\n"
        + (text or "(Without a file of it; LICENSE-APACHE beside this one is Apache 2.0.)")
        for text, heads in texts.items()
    ]
    line = f"\n\n{'-' * 80}\n\n"
    return f"The crates that zeusm's libraries link, and their licences.{line}{line.join(parts)}\n"


def amend(files, root, target=LINUX):
    """Add the lists and the licences to the files of a wheel. A list of maturin's is kept."""
    found = metadata(root, target)
    crates = {crate: linked(found, crate) for crate in CRATES}
    (about,) = [path for path in files if path.endswith(".dist-info/METADATA")]
    folder = about.rpartition("/")[0]
    own = b"\nLicense-File: THIRD-PARTY"
    if own not in files[about]:
        files[about] = files[about].replace(b"\nLicense-File:", own + b"\nLicense-File:", 1)
    for path in files:
        if path.startswith(f"{folder}/sboms/"):
            files[path] = normal(files[path].decode(), root).encode()
    for crate, packages in crates.items():
        listed = json.dumps(sbom(packages, crate), indent=2)
        files.setdefault(f"{folder}/sboms/{crate}.cyclonedx.json", listed.encode())
    texts = licences({k: v for each in crates.values() for k, v in each.items()})
    files[f"{folder}/licenses/THIRD-PARTY"] = texts.encode()
