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
            "raise ValueError('numpy.dtype size changed')",
            "a package that zeusm needs is installed and cannot be imported (numpy.dtype size changed): "
            "`python -m zeusm doctor` names the remedy",
        ),
        (
            "raise ImportError('libintlc.so.5: cannot open shared object file')",
            "a package that zeusm needs is installed and cannot be imported (libintlc.so.5: cannot open shared object file): "
            "`python -m zeusm doctor` names the remedy",
        ),
    ],
    ids=["missing", "incompatible", "broken"],
)
def test_what_helps_is_named(fresh, tmp_path, content, expected):
    (tmp_path / "dpctl").mkdir()
    (tmp_path / "dpctl/__init__.py").write_text(content)
    out = fresh(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n" + ACCESS).stdout
    assert out.endswith(f": {expected}\n")


@pytest.mark.parametrize(
    "what",
    ["raise TimeoutError('passes')", "raise OSError(24, 'passes')", "finalized = Finalized()"],
    ids=["handler", "descriptors", "finalizer"],
)
def test_an_error_of_other_code_during_the_import_of_dpctl_is_not_remembered(fresh, what):
    """Of a signal's handler, or of a finalizer that allocates, which finds dpctl half imported."""
    out = fresh(f"""
        import sys
        import zeusm.memory as zm

        told = []

        class Finalized:
            def __del__(self):
                try:
                    zm.MemoryUSMHost(64)
                    told.append("no error")
                except ImportError as error:
                    told.append(str(error))

        class Once:
            def find_spec(self, name, path=None, target=None):
                if name == "dpctl._sycl_device":
                    sys.meta_path.remove(self)
                    {what}

        sys.meta_path.insert(0, Once())
        try:
            zm.MemoryUSMHost(64)
        except Exception as error:
            print(type(error).__name__)
        memory = zm.MemoryUSMHost(64)
        import dpctl
        assert memory.sycl_queue == dpctl.get_device_cached_queue(dpctl.SyclDevice())
        assert all("partially initialized" in it for it in told), told
        print(len(told))
    """).stdout
    assert out.endswith("1\n" if "Finalized" in what else "0\n")


def test_memory_is_allocated_where_the_import_of_dpctl_is_forbidden(fresh):
    fresh("""
        import sys
        sys.modules["dpctl"] = None
        import zeusm.memory
        for _ in range(2):
            assert zeusm.memory.MemoryUSMHost(64).nbytes == 64
    """)


def test_an_import_without_file_descriptors_is_not_remembered(fresh):
    fresh("""
        import os, resource
        import zeusm.memory as zm

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            zm.MemoryUSMHost(64)
        except Exception as error:
            failed = error
        else:
            raise AssertionError("dpctl was imported")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        memory = zm.MemoryUSMHost(64)
        import dpctl
        assert memory.sycl_queue == dpctl.get_device_cached_queue(dpctl.SyclDevice())
    """)


def test_the_module_memory_is_there_as_that_of_dpctl(fresh):
    fresh("import zeusm; assert zeusm.memory.MemoryUSMHost(64).nbytes == 64")


def test_slow_modules_of_the_standard_library_are_not_imported(fresh):
    slow = {"collections", "dataclasses", "enum", "functools", "json", "re", "threading", "typing"}
    slow |= {"__future__"}
    out = fresh(f"""
import sys
before = set(sys.modules)
import zeusm.memory
print(*({slow!r} & (set(sys.modules) - before)))
""").stdout
    assert out == "\n"


def test_the_first_history_imports_nothing(fresh):
    """A handler of a signal, or a finalizer, would find a module half imported, and a fork's child one that stays locked."""
    fresh("""
        import sys
        import zeusm.memory as zm

        memory, imported = zm.MemoryUSMHost(100), []
        sys.addaudithook(lambda event, names: event == "import" and imported.append(names[0]))
        with zm.record_history() as history:
            memory.close()
        history.snapshot(), zm.snapshot()
        assert not imported, imported
    """)
