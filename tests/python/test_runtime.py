"""Which Level Zero runtime serves, and that SYCL finds it without any help from the environment."""

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
    """This machine as it is, and as if it had no Level Zero package."""
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

        sys.modules["dpctl"] = None  # As if it were not installed.
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
        pytest.skip("the path that is known to work here is not the CPU runtime's")
    path = str(zeusm.runtime().path)
    fresh(
        f"import zeusm; r = zeusm.runtime(); assert (r.kind, str(r.path)) == ('custom', {path!r})",
        env={"ZEUSM_RUNTIME": path},
    )


@pytest.mark.parametrize("value", ["/nowhere/libze_loader.so.1", "gpuu", ""])
def test_a_wrong_choice_is_named(fresh, value):
    if value == "":  # Set but empty is as good as not set.
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
    """SYCL looks for its platforms when it is first asked, not when dpctl is imported."""
    fresh("""
        import warnings

        warnings.simplefilter("error")
        import dpctl
        import zeusm.memory
    """)


def test_nothing_is_printed(fresh):
    result = fresh("import zeusm.memory as m; x = m.MemoryUSMShared(64); x.memset(1); del x")
    assert (result.stdout, result.stderr) == ("", "")


def test_every_function_is_there_at_once(machine):
    machine("import zeusm, dpctl; dpctl.SyclDevice('level_zero:gpu:0')", env={"LD_BIND_NOW": "1"})
