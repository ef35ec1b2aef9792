"""Packages that zeusm imports at their first use, so that its own import is short, and the errors of those that cannot be imported."""

import pytest

ACCESS = """
import zeusm.memory as zm
try:
    zm.MemoryUSMHost(64).sycl_queue
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "raise ModuleNotFoundError(\"No module named 'dpctl'\")",
            "SYCL objects need dpctl: pip install dpctl (No module named 'dpctl')",
        ),
        (
            "raise ImportError('libintlc.so.5: cannot open shared object file')",
            "a package that zeusm needs is installed and cannot be imported (libintlc.so.5: cannot open shared object file): "
            "`python -m zeusm doctor` names the remedy",
        ),
    ],
    ids=["missing", "broken"],
)
def test_what_helps_is_named(fresh, tmp_path, content, expected):
    (tmp_path / "dpctl").mkdir()
    (tmp_path / "dpctl/__init__.py").write_text(content)
    out = fresh(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + ACCESS).stdout
    assert out.endswith(f": {expected}\n")


def test_slow_modules_of_the_standard_library_are_not_imported(fresh):
    slow = {"collections", "dataclasses", "enum", "functools", "json", "re", "threading", "typing"}
    out = fresh(f"""
import sys
before = set(sys.modules)
import zeusm.memory
print(*({slow!r} & (set(sys.modules) - before)))
""").stdout
    assert out == "\n"
