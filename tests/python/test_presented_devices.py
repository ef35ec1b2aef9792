"""The number of devices that the CPU runtime presents, and the variables that it refuses."""

import pytest


def test_a_program_chooses_the_devices(fresh):
    program = """
        import zeusm
        zeusm.set_cpu_devices(3, tiles=2, peer_access=False, cpu=True)
        import dpctl
        gpus = dpctl.get_devices(device_type="gpu")
        print(len(dpctl.get_devices(backend="level_zero")), len(gpus), [gpu.partition_max_sub_devices for gpu in gpus])
        zeusm.set_cpu_devices(3, tiles=2, peer_access=False, cpu=True)
        try:
            zeusm.set_cpu_devices(3, tiles=2, peer_access=False)
        except zeusm.LevelZeroError as error:
            print(error)
    """
    lines = fresh(program, env={"ZEUSM_CPU_DEVICES": "4"}).stdout.splitlines()
    assert lines[0] == "4 3 [2, 2, 2]"
    assert "have been listed already" in lines[1]
    assert "before" in lines[1]


@pytest.mark.parametrize("count", [0, -1, 33, 1 << 70, "2", 2.0, None])
def test_a_number_of_devices_out_of_range_is_refused(fresh, count):
    program = f"""
        import zeusm
        for arguments in [{{"count": {count!r}}}, {{"count": 1, "tiles": {count!r}}}]:
            try:
                zeusm.set_cpu_devices(**arguments)
            except (TypeError, ValueError) as error:
                print(type(error).__name__)
        print(len(zeusm.runtime().device_names))
    """
    kind = "ValueError" if isinstance(count, int) else "TypeError"
    # No number of tiles is the default.
    expected = [kind, "1"] if count is None else [kind, kind, "1"]
    assert fresh(program).stdout.split() == expected


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ZEUSM_CPU_DEVICES", "many", "a number from 1 to 32, with or without +cpu behind it"),
        ("ZEUSM_CPU_DEVICES", "0", "a number from 1 to 32, with or without +cpu behind it"),
        ("ZEUSM_CPU_TILES", "-1", "a number from 1 to 16"),
        ("ZEUSM_CPU_PEER_ACCESS", "2", "1, true, yes, on, 0, false, no or off"),
        ("ZE_FLAT_DEVICE_HIERARCHY", "flat", "COMPOSITE, FLAT or COMBINED"),
        ("ZE_AFFINITY_MASK", "gpu", "a list of devices 0 to 0, with commas between them"),
        ("ZE_AFFINITY_MASK", "5", "a list of devices 0 to 0, with commas between them"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(fresh, variable, value, expected):
    program = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import zeusm.memory
        print(*(warning.message for warning in caught))
        import dpctl
        print(dpctl.get_devices(backend="level_zero"))
        try:
            zeusm.memory.MemoryUSMShared(8)
        except Exception as error:
            print(error)
    """
    message = f'{variable}="{value}" is not {expected}'
    result = fresh(program, env={variable: value})
    warning, listed, error = result.stdout.splitlines()
    assert message in warning
    assert listed == "[]"
    assert message in error
    assert result.stderr.count(f"zeusm CPU runtime: {message}\n") == 1
