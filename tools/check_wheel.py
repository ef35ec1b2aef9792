"""Checks the contents of zeusm's wheels: python check_wheel.py <wheel>..."""

import struct
import sys
import zipfile
from pathlib import Path

RUNTIME = "zeusm/lib/libze_loader.so.1"
UNVERSIONED = "zeusm/lib/libze_loader.so"
STUB = "zeusm/_zeusm.pyi"
# The sources of the packages; there is no library among them.
SOURCES = Path(__file__).resolve().parent.parent / "python"
SUFFIXES = {".py", ".pyi", ".pxd", ".typed", ".h", ".pc", ".html", ".css", ".js"}
PYTHON = [path for path in SOURCES.glob("zeusm*/**/*") if path.suffix in SUFFIXES]
PACKAGES = [path.relative_to(SOURCES).as_posix() for path in PYTHON]
ON_WINDOWS = ["zeusm/_zeusm.pyd", "zeusm/lib/ze_loader.dll"]
LICENSES = [
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "licenses/THIRD-PARTY",
    "sboms/zeusm-cpu.cyclonedx.json",
]
UNWINDER = "libgcc_s.so.1"
# Tags of the dynamic section.
NEEDED, SONAME = 1, 14


def names(library: bytes, tag: int) -> list[str]:
    """The names of a tag in the dynamic section of a 64-bit little-endian ELF file, read through its program headers."""
    (table,) = struct.unpack_from("<Q", library, 0x20)
    size, count = struct.unpack_from("<HH", library, 0x36)
    headers = [struct.unpack_from("<IIQQQQQQ", library, table + i * size) for i in range(count)]

    def file_offset(address: int) -> int:
        for kind, _, offset, start, _, length, _, _ in headers:
            if kind == 1 and start <= address < start + length:  # PT_LOAD
                return offset + address - start
        raise ValueError(f"no segment holds address {address:#x}")

    offset, length = next((h[2], h[5]) for h in headers if h[0] == 2)  # PT_DYNAMIC
    dynamic = list(struct.iter_unpack("<qQ", library[offset : offset + length]))
    strings = file_offset(dict(dynamic)[5])  # DT_STRTAB
    begins = [strings + value for each, value in dynamic if each == tag]
    return [library[begin : library.index(b"\0", begin)].decode() for begin in begins]


def extension(interpreter: str, abi: str) -> str | None:
    """The name of the extension module in a wheel with these tags: for the stable ABI from Python 3.11 on, or for one version
    of Python, with a GIL or without."""
    if (interpreter, abi) == ("cp311", "abi3"):
        return "zeusm/_zeusm.abi3.so"
    if abi in (interpreter, f"{interpreter}t"):
        return f"zeusm/_zeusm.cpython-{abi.removeprefix('cp')}-x86_64-linux-gnu.so"
    return None


def is_library(name: str) -> bool:
    return name.endswith((".dll", ".pyd", ".so")) or ".so." in name


def faults(wheel: Path) -> list[str]:
    found = []
    module = extension(*wheel.name.split("-")[2:4])
    libraries = [RUNTIME, UNVERSIONED, *([module] if module else [])]
    if wheel.stem.endswith("win_amd64"):
        libraries = ON_WINDOWS
    with zipfile.ZipFile(wheel) as archive:
        listed = archive.namelist()
        found += [f"{name} is missing" for name in PACKAGES + libraries if name not in listed]
        found += [
            f"{name} is of another system"
            for name in listed
            if name not in libraries and is_library(name)
        ]
        found += [f"no {text}" for text in LICENSES if text not in str(listed)]
        if STUB in listed and b'"""' not in archive.read(STUB):
            found.append(f"{STUB} has no docstrings")
        # They would differ from build to build.
        found += [
            f"{name} has {word}"
            for name in listed
            if "/sboms/" in name
            for word in ("serialNumber", "timestamp", "file:///")
            if word.encode() in archive.read(name)
        ]
        if RUNTIME in listed:
            soname = names(archive.read(RUNTIME), SONAME)
            if soname != ["libze_loader.so.1"]:
                found.append(f"{RUNTIME} has SONAME {soname}, so SYCL would not find it")
        if UNVERSIONED in listed and names(archive.read(UNVERSIONED), NEEDED) != [
            Path(RUNTIME).name
        ]:
            found.append(f"{UNVERSIONED} needs not the runtime alone")
        found += [
            f"{library} has an unwinder of its own, with which threads that end at the exit crash"
            for library in (module, RUNTIME)
            if library in listed and UNWINDER not in names(archive.read(library), NEEDED)
        ]
        if module is None:
            found.append(
                f"{wheel.name} is built neither for abi3 from Python 3.11 nor for one version of Python"
            )
    return found


def main() -> int:
    failed = False
    for wheel in map(Path, sys.argv[1:]):
        wrong = faults(wheel)
        failed |= bool(wrong)
        print(f"{wheel.name}: {'; '.join(wrong) if wrong else 'complete'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
