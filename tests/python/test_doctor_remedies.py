"""The commands that `zeusm doctor` suggests: for variables, for the distribution's packages, for the kernel's drivers."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import zeusm
from doctor_machines import machine
from zeusm._doctor import Machine, State, gpu, libraries, sycl, variables

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("release", "package", "remedy", "text"),
    [
        ("", "libze-intel-gpu1", "sudo apt install libze-intel-gpu1", ""),
        ('ID=debian\nVERSION_ID="13"', "libze-intel-gpu1", "sudo apt install libze-intel-gpu1", ""),
        ('ID=debian\nVERSION_ID="12"', "libze1", "sudo apt install libze1", ""),
        ('ID=debian\nVERSION_ID="12"', "libze-intel-gpu1", None, "; this distribution has no"),
        ("ID=debian", "libze-intel-gpu1", "sudo apt install libze-intel-gpu1", ""),
        ('ID=ubuntu\nVERSION_ID="22.04"', "libze-intel-gpu1", None, "; this distribution has no"),
        ('ID=ubuntu\nVERSION_ID="24.04"', "libze1", "sudo apt install libze1", ""),
        ("ID=mint\nID_LIKE='ubuntu debian'\nX='", "libze1", "sudo apt install libze1", ""),
        ("# a\nID=fedora", "libze1", "sudo dnf install oneapi-level-zero", ""),
        (
            'ID="rocky"\nID_LIKE="rhel centos fedora"',
            "libze-intel-gpu1",
            "sudo dnf install intel-level-zero",
            "",
        ),
        ("ID=arch", "libze1", None, "; the package of Debian and Ubuntu is libze1"),
    ],
)
def test_the_command_is_that_of_the_distribution(tmp_path, release, package, remedy, text):
    one = machine(tmp_path, os.environ, **{"etc/os-release": release})
    found = libraries.find(one, "driver", "libnothing.so.1", package)
    assert (found.state, found.remedy) == (State.WRONG, remedy)
    ends = "cannot open shared object file: No such file or directory"
    assert found.text.partition(ends)[2].startswith(text)
    assert bool(text) or found.text.endswith(ends)


def test_a_gpu_that_no_driver_looked_at_again(tmp_path):
    """As after `unbind`, with a module that is loaded. Older GPUs have i915, and older kernels no xe."""
    one = machine(tmp_path, os.environ)
    *_, found = gpu.find(one)
    assert found.remedy == "sudo modprobe --all i915 xe"
    (tmp_path / "sys/bus/pci/drivers/i915").mkdir(parents=True)
    *_, found = gpu.find(one)
    assert found.remedy == "echo 0000:03:00.0 | sudo tee /sys/bus/pci/drivers_probe"


class Answering(Machine):
    """A machine on which zeusm's runtime has an error or works, and SYCL shows no device."""

    def __init__(self, environment, runtime_error="", kernel_error="SyclDeviceCreationError: no"):
        super().__init__(environment=environment)
        object.__setattr__(self, "errors", {sycl.RUNTIME: runtime_error, sycl.KERNEL: kernel_error})

    def run(self, program):
        error = self.errors.get(program, "")
        answer = "" if error else json.dumps({"version": "0.22", "devices": []})
        return subprocess.CompletedProcess([], int(bool(error)), answer, error)


@pytest.mark.skipif(find_spec("dpnp") is None, reason="the steps look for dpctl and dpnp first")
@pytest.mark.parametrize("name", variables.HIDING)
def test_a_variable_that_hides_all_devices(name):
    one = Answering({name: "1", "ZEUSM_POOL": "0"})
    for step in sycl.find_dpctl, sycl.find_kernels:
        (found,) = step(one)
        assert (found.state, found.remedy) == (State.WRONG, f"unset {name}"), step
    (found,) = sycl.find_dpctl(Answering({}))
    assert found.remedy is None


@pytest.mark.skipif(find_spec("dpnp") is None, reason="the steps look for dpctl and dpnp first")
def test_a_kernel_that_fails_on_a_device_is_not_the_fault_of_the_selector():
    one = Answering({"ONEAPI_DEVICE_SELECTOR": "level_zero:gpu"}, kernel_error="RuntimeError: no")
    (found,) = sycl.find_kernels(one)
    assert (found.state, found.remedy) == (State.WRONG, None)


@pytest.mark.skipif(find_spec("dpnp") is None, reason="the step looks for dpnp first")
def test_dpnp_is_installed_again_if_it_cannot_be_imported():
    one = Answering({}, kernel_error="ImportError: libmkl_sycl_dft.so.6: cannot open")
    (found,) = sycl.find_kernels(one)
    assert (found.state, found.remedy) == (State.WRONG, "pip install --force-reinstall dpnp")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ZE_AFFINITY_MASK", "99"),
        ("ZEUSM_POOL", "maybe"),
        pytest.param("ZEUSM_CPU_DEVICES", "0", marks=pytest.mark.daily),
        pytest.param("ZEUSM_CPU_ENGINES", "2", marks=pytest.mark.daily),
        pytest.param("ZEUSM_CACHE_DIR", "relative", marks=pytest.mark.daily),
        pytest.param("ZEUSM_COMPILER_SECONDS", "1.5", marks=pytest.mark.daily),
        pytest.param("ZEUSM_RUNTIME", "nonsense", marks=pytest.mark.daily),
    ],
)
def test_a_value_that_the_runtime_refuses(name, value):
    """Every line that it makes wrong has the command."""
    command = [sys.executable, "-m", "zeusm", "doctor", "--json"]
    environment = os.environ | {"ZEUSM_RUNTIME": "cpu", name: value}
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert run.returncode == 1
    wrong = [found for found in json.loads(run.stdout) if found["state"] == "wrong"]
    assert {"zeusm's runtime", "kernel compiler"} <= {found["step"] for found in wrong}
    assert {found["remedy"] for found in wrong} == {f"unset {name}"}, wrong


@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="the CPU runtime's variable")
def test_an_instruction_set_that_the_opencl_runtime_does_not_know():
    name = "CL_CONFIG_CPU_TARGET_ARCH"
    one = Machine(environment=os.environ | {name: "nonsense"})
    for found in sycl.find_compiler(one):
        assert found.state is State.ABSENT or found.remedy == f"unset {name}", found
    for found in sycl.find_kernels(one):
        # SYCL 2024 does not pass the cause on.
        if sycl.OPENCL_FAILS in found.text:
            assert found.remedy == f"unset {name}", found


def test_a_step_that_the_kernel_kills_says_why():
    """As in a control group whose memory is too small for a kernel."""
    found, error = sycl.ask(Machine(), "import os; os.kill(os.getpid(), 9)")
    assert (found, error) == (None, "signal 9, as the kernel's OOM killer sends")
