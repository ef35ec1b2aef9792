"""Checks the contents of zeusm's wheels: python check_wheel.py <wheel>..."""

import struct
import sys
import zipfile
from pathlib import Path

EXTENSION = "zeusm/_zeusm.abi3.so"
RUNTIME = "zeusm/lib/libze_loader.so.1"
# The sources of the packages; there is no library among them.
SOURCES = Path(__file__).resolve().parent.parent / "python"
SUFFIXES = {".py", ".pyi", ".typed", ".h", ".html", ".css", ".js"}
PYTHON = [path for path in SOURCES.glob("zeusm*/**/*") if path.suffix in SUFFIXES]
WANTED = [*(path.relative_to(SOURCES).as_posix() for path in PYTHON), EXTENSION, RUNTIME]
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


def faults(wheel: Path) -> list[str]:
    found = []
    with zipfile.ZipFile(wheel) as archive:
        listed = archive.namelist()
        found += [f"{name} is missing" for name in WANTED if name not in listed]
        found += [f"no {text}" for text in LICENSES if text not in str(listed)]
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
        found += [
            f"{library} has an unwinder of its own, with which threads that end at the exit crash"
            for library in (EXTENSION, RUNTIME)
            if library in listed and UNWINDER not in names(archive.read(library), NEEDED)
        ]
        if wheel.name.split("-")[2:4] != ["cp311", "abi3"]:
            found.append(f"{wheel.name} is not built for abi3 from Python 3.11")
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
