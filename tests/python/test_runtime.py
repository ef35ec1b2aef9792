"""The selection of the Level Zero runtime, which SYCL finds without environment variables."""

import sys
from pathlib import Path

import pytest
import zeusm

ONE_LINE = (
    "import zeusm.memory as m, dpctl.memory as d; x = m.MemoryUSMShared(4096); "
    "y = d.as_usm_memory(x); assert y._pointer == x._pointer and y.get_usm_type() == 'shared' "
    "and y.sycl_context == x.sycl_context"
)

LOADERS = """
    import os

    def loaders():
        "The files in this process that call themselves the Level Zero loader."
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
        return {path for path in paths if os.path.basename(path).startswith("libze_loader.so")}
"""


@pytest.fixture(params=["fresh", "fresh_without_level_zero"])
def machine(request):
    """Runs programs on this machine as it is, and with its Level Zero packages hidden."""
    return request.getfixturevalue(request.param)


def test_the_one_line_program(machine):
    machine(ONE_LINE)


def test_dpctl_sees_a_level_zero_gpu(machine):
    machine("""
        import zeusm
        import dpctl

        device = dpctl.SyclDevice("level_zero:gpu:0")
        assert device.name in zeusm.runtime().device_names, zeusm.runtime().device_names
    """)


def test_one_loader_serves_and_it_is_the_one_that_runtime_names(machine):
    machine(
        LOADERS
        + """
    import zeusm.memory
    import dpctl

    dpctl.get_devices()
    zeusm.memory.MemoryUSMShared(64)
    runtime = zeusm.runtime()
    assert loaders() == {os.path.realpath(runtime.path)}, (loaders(), runtime.path)
    if runtime.kind == "cpu":
        package = os.path.dirname(os.path.realpath(zeusm.__file__))
        assert os.path.realpath(runtime.path).startswith(package + os.sep), runtime.path
    """
    )


def test_memory_needs_no_dpctl(machine):
    machine("""
        import sys

        sys.modules["dpctl"] = None  # Simulates an environment without dpctl.
        import zeusm.memory

        x = zeusm.memory.MemoryUSMShared(4096)
        x.copy_from_host(b"abc")
        assert bytes(x)[:3] == b"abc"
        try:
            x.__sycl_usm_array_interface__
        except Exception as error:
            assert "dpctl" in str(error), error
        else:
            raise AssertionError("a SUAI without a SYCL runtime")
    """)


def test_zeusm_is_imported_while_dpctl_is(machine):
    """By another thread: the module is known then, and has nothing yet."""
    machine("""
        import sys, types

        sys.modules["dpctl"] = types.ModuleType("dpctl")
        import zeusm.memory

        assert zeusm.memory.MemoryUSMShared(8).nbytes == 8
    """)


def test_runtime_tells_what_serves_and_why():
    runtime = zeusm.runtime()
    assert runtime.kind in ("system", "cpu", "custom")
    assert runtime.reason
    assert runtime.device_names
    if runtime.kind == "cpu":
        assert "CPU" in runtime.device_names[0]


def test_the_cpu_runtime_can_be_asked_for(machine):
    machine("import zeusm; assert zeusm.runtime().kind == 'cpu'", env={"ZEUSM_RUNTIME": "cpu"})


def test_a_library_can_be_named(fresh):
    if zeusm.runtime().kind != "cpu":
        pytest.skip("the runtime on this machine is not the CPU runtime")
    path = str(zeusm.runtime().path)
    fresh(
        f"import zeusm; r = zeusm.runtime(); assert (r.kind, str(r.path)) == ('custom', {path!r})",
        env={"ZEUSM_RUNTIME": path},
    )


@pytest.mark.parametrize("value", ["/nowhere/libze_loader.so.1", "gpuu", ""])
def test_a_wrong_choice_is_named(fresh, value):
    if value == "":  # An empty variable counts as unset.
        fresh("import zeusm; zeusm.runtime()", env={"ZEUSM_RUNTIME": value})
        return
    result = fresh(
        "import zeusm.memory; zeusm.memory.MemoryUSMShared(64)",
        env={"ZEUSM_RUNTIME": value},
        fails=True,
    )
    assert value in result.stderr


def test_import_after_dpctl_has_looked_warns(machine):
    result = machine("""
        import dpctl

        dpctl.get_devices()
        if not any("level_zero" in device.filter_string for device in dpctl.get_devices()):
            import warnings

            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                import zeusm
            (warning,) = caught
            assert warning.category is zeusm.RuntimeSelectionWarning, warning
            assert "import zeusm" in str(warning.message), warning.message
            print("warned")
    """)
    assert result.stdout == "warned\n" or zeusm.runtime().kind != "cpu"


def test_import_after_dpctl_alone_is_quiet(fresh):
    """SYCL enumerates its platforms at the first query, not at the import of dpctl."""
    fresh("""
        import warnings

        warnings.simplefilter("error")
        import dpctl
        import zeusm.memory
    """)


def test_nothing_is_printed(fresh):
    result = fresh("import zeusm.memory as m; x = m.MemoryUSMShared(64); x.memset(1); del x")
    assert (result.stdout, result.stderr) == ("", "")


LIBRARIES = Path(sys.prefix) / "lib"


@pytest.fixture
def copied_runtime(tmp_path):
    """A copy of the runtime's library in another file."""
    copy = tmp_path / "libze_loader.so.1"
    copy.write_bytes((Path(zeusm.__file__).parent / "lib" / copy.name).read_bytes())
    return copy


def test_two_level_zero_libraries_are_named(fresh, copied_runtime):
    """A handle of one library never reaches the other: operations that need it raise, all others work."""
    fresh(
        f"""
        import ctypes, os, warnings

        ctypes.CDLL({str(copied_runtime)!r})
        import dpctl, dpctl.memory

        queue = dpctl.SyclQueue("level_zero")
        theirs = dpctl.memory.MemoryUSMShared(64, queue=queue)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import zeusm
            import zeusm.memory as m
        (warning,) = caught
        assert warning.category is zeusm.RuntimeSelectionWarning, warning
        both = {str(copied_runtime)!r}, str(zeusm.runtime().path)
        assert not os.path.samefile(*both)

        def refused(call):
            try:
                call()
            except (RuntimeError, ValueError) as error:
                check_message(str(error))
            else:
                raise AssertionError("a handle of another library was accepted")

        def check_message(text):
            assert all(part in text for part in (*both, "import zeusm before dpctl", "ZEUSM_RUNTIME")), text

        check_message(str(warning.message))
        x = m.MemoryUSMShared(64)
        x.memset(7)
        assert bytes(x) == bytes([7]) * 64
        refused(lambda: x.sycl_context)
        refused(lambda: m.MemoryUSMShared(64, queue=queue))
        refused(lambda: m.MemoryUSMShared(64, queue="level_zero"))
        refused(lambda: m.as_usm_memory(theirs))
        refused(lambda: zeusm.asarray([1], queue=queue))
        """,
        env={"ZEUSM_RUNTIME": "cpu"},
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ZEUSM_POOL", "maybe"),
        ("ZEUSM_CHECK", "leak"),
        ("ZEUSM_CPU_STRICT", "2"),
        ("ZEUSM_CPU_DISCRETE", "x"),
        ("ZEUSM_CPU_ENGINES", "Queue"),
        ("ZEUSM_CPU_TILES", "0"),
        ("ZEUSM_CACHE_DIR", "relative"),
        ("ZEUSM_CACHE_SIZE", "1.5"),
        ("ZEUSM_COMPILER_SECONDS", "-1"),
        ("ZEUSM_CHECK_EXIT_CODE", "256"),
    ],
)
def test_a_value_that_cannot_be_used_is_an_error(fresh, name, value):
    program = "import zeusm.memory as m; m.MemoryUSMHost(64)"
    told = fresh(program, env={name: value, "ZEUSM_RUNTIME": "cpu"}, fails=True).stderr
    assert f'{name}="{value}" is not' in told.splitlines()[-1]


def test_a_misspelt_variable_is_named(fresh):
    """Once, at the import; variables of tests are no mistakes."""
    told = fresh("import zeusm", env={"ZEUSM_CHEKC": "1", "ZEUSM_TEST_MODE": "direct"}).stderr
    assert "no variable ZEUSM_CHEKC" in told
    assert told.count("RuntimeWarning") == 1


@pytest.mark.parametrize(
    ("selector", "cause"),
    [
        ("opencl:gpu", "none of its parts names level_zero"),
        ("opencl:gpu; Level_Zero:7", "its part 'Level_Zero:7' names none of them"),
        ("*:7;!opencl:*", "its part '*:7' names none of them"),
        ("!level_zero:*;!opencl:*", "its part '!level_zero:*' hides them"),
    ],
)
def test_the_part_of_a_selector_that_hides_level_zero_is_named(fresh, selector, cause):
    """The first allocation warns, and what needs SYCL says the same."""
    fresh(
        """
        import sys, warnings
        import zeusm.memory as m

        cause = sys.argv[1].replace("'", '"')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = m.MemoryUSMShared(64)
            m.MemoryUSMShared(64)
        (warning,) = caught
        assert warning.category is RuntimeWarning
        assert cause in str(warning.message), warning.message
        try:
            x.sycl_context
        except RuntimeError as error:
            assert cause in str(error), error
        else:
            raise AssertionError("SYCL found a device")
        """,
        cause,
        env={"ONEAPI_DEVICE_SELECTOR": selector},
    )


def test_a_selector_that_hides_level_zero_is_named(fresh):
    fresh(
        """
        import warnings
        import zeusm.memory as m

        warnings.simplefilter("ignore")
        x = m.MemoryUSMShared(64)
        x.memset(7)
        for call in (lambda: x.sycl_context, lambda: x.__sycl_usm_array_interface__):
            try:
                call()
            except RuntimeError as error:
                text = str(error)
                assert "ONEAPI_DEVICE_SELECTOR" in text and "opencl:gpu" in text, text
                assert "import zeusm before dpctl" in text, text
            else:
                raise AssertionError("SYCL found a device")
        """,
        env={"ONEAPI_DEVICE_SELECTOR": "opencl:gpu"},
    )


WITHOUT = """
import ctypes

ctypes.CDLL({library!r}, mode=ctypes.RTLD_GLOBAL)  # Later loads of this name get this library.
import warnings

import zeusm.memory as m

x = m.MemoryUSMShared(1 << 12)
x.memset(7)
assert bytes(x) == bytes([7]) * (1 << 12)
large = m.MemoryUSMDevice(1 << 28)
y = m.MemoryUSMDevice(1 << 12)
y.copy_from_device(x)
assert y.tobytes() == bytes(x)
import dpctl
from dpctl.memory import as_usm_memory

dpctl.SyclDevice("level_zero")
libraries = {{line.split()[-1] for line in open("/proc/self/maps") if "libsycl.so" in line}}
assert libraries == {{{library!r}}}, libraries


def interface():
    return as_usm_memory(x).tobytes() == bytes(x)


def event():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        large.memset_async(1)
        return y.memset_async(1).sycl_event


def message_of(call):
    try:
        assert call()
    except (RuntimeError, RuntimeWarning) as error:
        return str(error)
    return None


"""


@pytest.fixture
def sycl_copy(tmp_path):
    """Makes a folder with the SYCL runtime in which the library of the given name has other content."""

    def make(name, content):
        for library in LIBRARIES.glob("lib*.so*"):
            if library.name != name:
                (tmp_path / library.name).symlink_to(library)
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return make


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("_ZN4sycl3_V16detail10make_eventEmRKNS0_7contextEbNS0_7backendE", "make_event"),
        ("_ZNK4sycl3_V15event9getNativeEv", "sycl::event::getNative"),
        ("_ZNK4sycl3_V15queue16ext_oneapi_emptyEv", None),
    ],
)
def test_a_missing_function_of_sycl_turns_off_what_needs_it(fresh, sycl_copy, name, function):
    original = next(LIBRARIES.glob("libsycl.so.[0-9]"))
    content = original.read_bytes()
    assert name.encode() in content
    if original.name == "libsycl.so.7":
        # zeusm creates no events with SYCL 2024, and does not warn of that. SYCL 2024 itself needs make_event, so the test
        # renames another function.
        function = None
        name = "_ZNK4sycl3_V15queue16ext_oneapi_emptyEv"
    library = sycl_copy(original.name, content.replace(name.encode(), name.encode()[:-1] + b"_"))
    fresh(
        WITHOUT.format(library=str(library))
        + f"""
assert message_of(interface) is None
text = message_of(event)
assert text is None if {function!r} is None else {function!r} in text, text
""",
        env={"LD_LIBRARY_PATH": str(LIBRARIES)},
    )


def test_an_unknown_sycl_makes_no_events(fresh, sycl_copy):
    """zeusm uses all of an unknown SYCL version but its events, whose layout is unknown."""
    copy = sycl_copy("libsycl.so.77", next(LIBRARIES.glob("libsycl.so.[0-9]")).read_bytes())
    fresh(
        WITHOUT.format(library=str(copy))
        + """
assert message_of(interface) is None
assert "libsycl.so.77" in message_of(event) and "SYCL 2025" in message_of(event), message_of(event)
""",
        env={"LD_LIBRARY_PATH": str(LIBRARIES)},
    )


def test_every_function_is_there_at_once(machine):
    machine("import zeusm, dpctl; dpctl.SyclDevice('level_zero:gpu:0')", env={"LD_BIND_NOW": "1"})


@pytest.mark.parametrize("first", ["main", "sub"])
def test_sub_interpreters_are_refused(fresh, first):
    """An import in a sub-interpreter raises. The attempt, and the sub-interpreter's end, do not affect the main one."""
    result = fresh(
        f"""
        import gc

        # CPython 3.12 and later refuse the import in an isolated one themselves.
        try:
            import _interpreters as interpreters
            options = dict(config="legacy")
        except ImportError:  # Before CPython 3.13.
            import _xxsubinterpreters as interpreters
            options = dict(isolated=False)

        if {first!r} == "main":
            import zeusm
        attempt = "try: import zeusm.memory\\nexcept ImportError as error: print(error, flush=True)"
        for _ in range(2):
            sub = interpreters.create(**options)
            interpreters.run_string(sub, attempt)
            interpreters.destroy(sub)
        gc.collect()
        import zeusm
        import zeusm.memory as zm
        import dpctl.memory

        m = zm.MemoryUSMShared(1 << 20)
        m.memset_async(7)
        assert bytes(dpctl.memory.as_usm_memory(m).copy_to_host()) == bytes([7]) * (1 << 20)
        assert zeusm.from_dlpack(m)._pointer == m._pointer
        try:
            zm.MemoryUSMDevice(1 << 62)
        except zm.USMAllocationError:
            pass
        del m
        gc.collect()
        """
    )
    expected = "zeusm supports the main interpreter only, and this is a sub-interpreter\n"
    assert result.stdout == 2 * expected
