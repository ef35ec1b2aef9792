"""`zeusm doctor` on machines with Windows, which are simulated by folders, a registry and the answers of programs."""

import json
import os
import subprocess

import pytest
from zeusm._doctor import (
    State,
    examine,
    sycl,
    variables,
    windows,
    windows_libraries,
    windows_system,
)
from zeusm._doctor.machine import what_ended
from zeusm._doctor.windows_machine import WindowsMachine

NEEDED = windows_libraries.NEEDED

pytestmark = pytest.mark.once

ARC = {
    "DriverDesc": "Intel(R) Arc(TM) B580 Graphics",
    "MatchingDeviceId": r"PCI\VEN_8086&DEV_E20B",
    "DriverVersion": "32.0.101.8509",
    "DriverDate": "1-30-2026",
    "LevelZeroDriverPath": r"C:\Windows\System32\DriverStore\ze_intel_gpu64.dll",
}
OTHER = {"DriverDesc": "Another GPU", "MatchingDeviceId": r"PCI\VEN_10DE&DEV_2684"}


class Answering(WindowsMachine):
    """Programs print this."""

    answer: object = None
    error = "OSError: [WinError 193] %1 is not a valid Win32 application"

    def run(self, program):
        compile(program, "program", "exec")
        if self.answer is None:
            return subprocess.CompletedProcess(program, 1, "", self.error)
        return subprocess.CompletedProcess(program, 0, json.dumps(self.answer), "")


def machine(tmp_path, adapters=(ARC,), files=(), **environment):
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return Answering(
        root=tmp_path / "Windows",
        environment=environment,
        prefix=tmp_path / "Umgebung für Python",
        version="10.0.26100",
        adapters=lambda: list(adapters),
    )


def states(findings):
    return [(finding.step, finding.state) for finding in findings]


def test_windows_and_its_gpu(tmp_path):
    it = machine(tmp_path, (OTHER, ARC))
    assert states(windows_system.find_version(it)) == [("Windows", State.OK)]
    name, driver = windows_system.find_gpu(it)
    assert (name.state, name.text) == (State.OK, ARC["DriverDesc"])
    assert (driver.state, driver.text) == (State.OK, "version 32.0.101.8509 of 1-30-2026")


def test_a_machine_without_an_intel_gpu(tmp_path):
    it = machine(tmp_path, (OTHER,))
    (gpu,) = windows_system.find_gpu(it)
    assert gpu.state is State.ABSENT
    assert "Another GPU" in gpu.text
    (loader,) = windows_libraries.find_loader(it)
    assert loader.state is State.ABSENT


def test_a_driver_without_level_zero(tmp_path):
    old = {name: value for name, value in ARC.items() if name != "LevelZeroDriverPath"}
    it = machine(tmp_path, (old,))
    _, driver = windows_system.find_gpu(it)
    assert driver.state is State.WRONG
    assert "too old" in driver.text
    assert driver.remedy == windows_system.UPDATE
    (loader,) = windows_libraries.find_loader(it)
    assert loader.state is State.WRONG
    assert "System32" in loader.text
    assert loader.remedy == windows_system.UPDATE


def test_an_old_windows(tmp_path):
    it = machine(tmp_path)
    object.__setattr__(it, "version", "6.1.7601")
    (found,) = windows_system.find_version(it)
    assert found.state is State.WRONG


def test_the_loader_and_another_in_path(tmp_path):
    other = tmp_path / "Werkzeuge"
    files = ("Windows/System32/ze_loader.dll", "Werkzeuge/ze_loader.dll")
    it = machine(
        tmp_path, files=files, PATH=os.pathsep.join([f"{tmp_path}/none", str(other), "\0"])
    )
    it.__class__.answer = {"path": str(tmp_path / files[0]), "version": "1.28.0"}
    try:
        loader, note = windows_libraries.find_loader(it)
    finally:
        it.__class__.answer = None
    assert loader.state is State.OK
    assert loader.text.endswith("ze_loader.dll, version 1.28.0")
    assert note.state is State.NOTE
    assert str(other) in note.text
    broken, _ = windows_libraries.find_loader(it)
    assert broken.state is State.WRONG
    assert "WinError 193" in broken.text


def test_sycls_library_and_its_adapters(tmp_path):
    own, other = "Umgebung für Python/Library/bin", "oneAPI"
    complete = [f"{own}/{name}" for name in ("sycl9.dll", *NEEDED)]
    assert states(windows_libraries.find_sycl(machine(tmp_path))) == [
        ("SYCL's library", State.ABSENT)
    ]
    it = machine(tmp_path, files=complete, PATH=str(tmp_path / other))
    (found,) = windows_libraries.find_sycl(it)
    assert found.state is State.OK
    assert found.text.endswith("sycl9.dll with ur_adapter_level_zero")
    it = machine(tmp_path, files=[f"{other}/sycl8.dll"], PATH=str(tmp_path / other))
    first, second, note = windows_libraries.find_sycl(it)
    assert first.state is State.OK
    assert "sycl9.dll" in first.text
    assert second.state is State.WRONG
    assert "ur_adapter_level_zero.dll" in second.text
    assert second.remedy == "pip install --force-reinstall intel-cmplr-lib-ur umf tcmlib"
    assert note.state is State.NOTE
    assert "dpctl" in note.text


def test_sycl_at_a_path_that_the_code_page_cannot_write(tmp_path):
    own = "Umgebung für Python/Library/bin"
    it = machine(tmp_path, files=[f"{own}/{name}" for name in ("sycl9.dll", *NEEDED)])
    for code_page, expected in {"cp1252": State.OK, "cp1251": State.NOTE}.items():
        object.__setattr__(it, "code_page", code_page)
        (found,) = windows_libraries.find_sycl(it)
        assert found.state is expected
    assert "the code page cp1251 lacks" in found.text


def test_dpctl_that_finds_its_libraries_in_virtual_environments_only(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: True)
    error = "ImportError: DLL load failed while importing _sycl_device: Module not found."
    monkeypatch.setattr(Answering, "error", error)
    own = "Umgebung für Python/Library/bin"
    reinstall = "pip install --force-reinstall dpctl"
    venv = "python -m venv .venv  # in which dpctl finds SYCL's libraries"
    it = machine(tmp_path, files=[f"{own}/sycl9.dll"])
    for is_virtual, checked, remedy in [
        (False, it, venv),
        (True, it, reinstall),
        (False, machine(tmp_path / "other"), reinstall),
    ]:
        object.__setattr__(checked, "is_virtual", is_virtual)
        (found,) = sycl.find_dpctl(checked)
        assert (found.state, found.text, found.remedy) == (State.WRONG, error, remedy)


@pytest.mark.parametrize(
    ("error", "state", "remedy"),
    [
        (f"{sycl.NO_OPENCL}: tried intelocl64.dll", State.ABSENT, sycl.OPENCL),
        (f"{sycl.OPENCL_FAILS}: x: no module (os error 126)", State.WRONG, sycl.OPENCL),
        (f"{sycl.OPENCL_FAILS}: x: no program (os error 193)", State.WRONG, None),
    ],
)
def test_what_an_opencl_runtime_lacks_is_installed(tmp_path, monkeypatch, error, state, remedy):
    monkeypatch.setattr(Answering, "error", error)
    (found,) = sycl.find_compiler(machine(tmp_path))
    assert (found.state, found.remedy) == (state, remedy)


def test_a_program_that_windows_has_ended_has_its_exception():
    assert what_ended(0xC0000005) == "exception 0xc0000005"
    assert what_ended(1) is None


def test_variables_have_powershells_command(tmp_path):
    (found,) = variables.find(machine(tmp_path, ZEUSM_RUNTIME="cpu"))
    assert found.remedy == "Remove-Item Env:ZEUSM_RUNTIME"


def test_all_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("zeusm._doctor.STEPS", windows.STEPS)
    findings = list(examine(machine(tmp_path)))
    assert {"Windows", "GPU", "GPU driver", "Level Zero loader"} <= {it.step for it in findings}
    assert not [it for it in findings if "this step of the doctor failed" in it.text]
