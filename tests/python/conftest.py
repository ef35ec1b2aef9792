"""Shared fixtures of the Python tests: the three classes, and new interpreters that run programs."""

import gc
import inspect
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import on_windows
import pytest
import snapshots

# zeusm is imported before dpctl, as in a user's program: on a machine without a GPU it loads the runtime
# that dpctl uses.
import zeusm.memory
from arrays import numbers
from dlpack_abi import Exporter

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {
    "device": zeusm.memory.MemoryUSMDevice,
    "shared": zeusm.memory.MemoryUSMShared,
    "host": zeusm.memory.MemoryUSMHost,
}

# Free-threaded Python has no dpctl. Elsewhere it is an error if it is missing.
WITHOUT_DPCTL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
NEED_DPCTL = [
    file.name
    for file in sorted(Path(__file__).parent.glob("test_*.py"))
    if re.search(
        r"^(import|from) (dpctl|dpnp|tensors|kernel_tables)\b",
        file.read_text("utf-8"),
        re.MULTILINE,
    )
]
NO_DPCTL = re.compile(r"No module named \\*'(dpctl|dpnp)|(dpctl|dpnp) is not installed")
collect_ignore = [*(NEED_DPCTL if WITHOUT_DPCTL else []), *on_windows.FILES]


def pytest_configure(config):
    """A program that hangs ends before its test does, so that its output is seen. Long tests have no limit."""
    limit = float(config.getini("faulthandler_timeout"))
    Fresh.seconds = 0.9 * limit if limit else None
    # A shell that starts the tests in the background has them, and all that they start, ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """What the imports of all tests have made is left out of later collections, each of which took a fifth of a second with it."""
    gc.collect()
    gc.freeze()


def pytest_report_header():
    header = [f"not run without dpctl: {' '.join(NEED_DPCTL)}"] if WITHOUT_DPCTL else []
    return [*header, *(f"not run: {file} {on_windows.REASONS[file]}" for file in on_windows.FILES)]


def pytest_collection_modifyitems(items):
    on_windows.skip(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Without dpctl, skips tests that turn out to need it, in a process of their own for instance."""
    report = yield
    text = report.longreprtext + report.capstdout + report.capstderr
    if WITHOUT_DPCTL and report.failed and NO_DPCTL.search(text):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], "it needs dpctl")
    return report


@pytest.fixture(params=CLASSES)
def usm_type(request):
    """Each USM kind, by dpctl's name."""
    return request.param


@pytest.fixture
def memory_class(usm_type):
    """The class of each kind."""
    return CLASSES[usm_type]


@pytest.fixture
def dpctl_class(memory_class):
    """dpctl's class of the same name."""
    import dpctl.memory

    return getattr(dpctl.memory, memory_class.__name__)


@pytest.fixture(params=["shared", "host"])
def host_class(request):
    """The classes of host-accessible memory."""
    return CLASSES[request.param]


# Intel's OpenCL runtime of 2024.2 prints this on processors that are newer than itself.
UNKNOWN_PROCESSOR = "SYCL CPU RT Warning: Unknown host CPU.\n"


class Fresh:
    """Runs programs in new interpreters with an environment of only the given variables."""

    seconds = None

    def __init__(self, prefix=(), executable=sys.executable):
        self.prefix = [*prefix, executable]

    def __call__(self, code, *arguments, env=None, fails=False, crashes=False):
        program = textwrap.dedent(code)
        return self.run("-c", program, *arguments, env=env, fails=fails, crashes=crashes)

    def run(self, *arguments, env=None, cwd="/", fails=False, crashes=False):
        # dpctl 0.17 cannot be imported without the first. Where the second is set, Hypothesis runs the same programs each time. The
        # third has the modules that other programs have built, the fourth is of `make coverage`, and Windows needs the last.
        names = ["LD_LIBRARY_PATH", "CI", "ZEUSM_CACHE_DIR", "LLVM_PROFILE_FILE", "SYSTEMROOT"]
        needed = {name: os.environ[name] for name in names if name in os.environ}
        result = subprocess.run(
            [*map(str, self.prefix), *map(str, arguments)],
            env=needed | (env or {}),
            cwd=cwd,  # Not the source tree: relative paths must not find its files.
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        result.stderr = result.stderr.replace(UNKNOWN_PROCESSOR, "")
        told = f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
        assert on_windows.is_crash(result.returncode) == crashes, told
        assert (result.returncode != 0 and not crashes) == fails, told
        return result


@pytest.fixture(scope="session")
def fresh():
    """Runs programs on this machine as it is."""
    return Fresh()


@pytest.fixture
def run_recorded(fresh):
    """Runs a program in a new interpreter, with the functions of `snapshots` before it."""

    def run(program, *arguments, **options):
        return fresh(inspect.getsource(snapshots) + program, *arguments, **options)

    return run


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """Builds a library of C functions that is interposed between the CPU runtime and its callers by ZEUSM_RUNTIME. Its
    functions have the names of the runtime's, and find those by `RTLD_NEXT`."""
    name, behind = b"libze_loader.so.1", b"libze_behind.so.1"

    def build(source):
        folder = tmp_path_factory.mktemp("stand-in")
        runtime = Path(zeusm.memory.__file__).parent / "lib" / name.decode()
        (folder / behind.decode()).write_bytes(runtime.read_bytes().replace(name, behind))
        (folder / "stand_in.c").write_text(source)
        options = [f"-Wl,-soname,{name.decode()}", f"-Wl,-rpath,{folder}", "-Wl,--no-as-needed"]
        compiler = [
            *shlex.split(os.environ.get("CC", "cc")),
            "-shared",
            "-fPIC",
            "-Wall",
            "-Werror",
        ]
        library = folder / name.decode()
        sources = [folder / "stand_in.c", folder / behind.decode()]
        subprocess.run([*compiler, *options, *sources, "-o", library], check=True)
        return library

    return build


@pytest.fixture
def fresh_without_level_zero(tmp_path):
    """Runs programs on this machine with the Level Zero packages hidden."""
    hide = ["unshare", "--map-root-user", "--mount", "sh", ROOT / "tools/hide_level_zero.sh"]
    prefix = [*map(str, hide), str(tmp_path)]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mount namespaces are not permitted, so the system's loader cannot be hidden")
    return Fresh(prefix)


@pytest.fixture(scope="module")
def large():
    """Memory large enough for a fill to stay in flight."""
    return zeusm.memory.MemoryUSMDevice(256 << 20)


# How many times as many fills are submitted where other programs delay this one so long that they are complete.
FACTORS = 1, 4, 16


@pytest.fixture
def busy(large):
    """Submits long fills to the default queue, and returns the event of the last one, which is in flight."""

    def submit(turns=5):
        for factor in FACTORS:
            for value in range(factor * turns):
                end = large.memset_async(value % 5)
            if not end.is_complete:
                return end
        raise AssertionError("the fills are complete, however many they are")

    yield submit
    large.memset_async().wait()


def in_time(attempt):
    """Calls `attempt` with more and more fills to submit, until it returns true: that they were in flight all the time."""
    assert any(attempt(5 * factor) for factor in FACTORS)


@pytest.fixture
def array(usm_type):
    """A matrix in memory of each kind."""
    return zeusm.asarray(numbers((4, 6)), usm_type=usm_type)


@pytest.fixture
def forget_exporters():
    """Frees the structures of all exporters after the test, when no import refers to them."""
    yield
    if Exporter.alive:
        gc.collect()
        Exporter.alive.clear()
