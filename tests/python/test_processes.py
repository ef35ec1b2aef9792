"""Programs that do not import zeusm find its device: `python -m zeusm run`, and `python -m zeusm enable`."""

import os
import signal
import site
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest
import zeusm
from conftest import Fresh
from zeusm._commands import enable
from zeusm._commands.run import environment_for

# Without zeusm, dpctl finds no Level Zero device on a machine without an Intel GPU.
LIST = "import dpctl; print([device.name for device in dpctl.get_devices(backend='level_zero')])"
NAMES = f"{zeusm.runtime().device_names}\n"
LEVEL_ZERO = "Backend     ext_oneapi_level_zero"


@pytest.fixture
def zeusm_run(fresh):
    def run(*arguments, **options):
        return fresh.run("-m", "zeusm", "run", *arguments, **options)

    return run


def test_a_child_and_its_children_find_the_device(zeusm_run):
    assert zeusm_run(sys.executable, "-c", LIST).stdout == NAMES
    assert LEVEL_ZERO in zeusm_run("/bin/sh", "-c", f"{sys.executable} -m dpctl -f").stdout


def test_the_program_finds_the_same_runtime_whatever_it_imports_first(zeusm_run):
    code = """if True:
        import dpctl
        assert dpctl.get_num_devices(backend="level_zero")
        import zeusm.memory
        memory = zeusm.memory.MemoryUSMShared(64)
        assert dpctl.memory.as_usm_memory(memory)._pointer == memory._pointer
        print(zeusm.runtime().kind, zeusm.runtime().path)
    """
    expected = f"{zeusm.runtime().kind} {zeusm.runtime().path}\n"
    assert zeusm_run(sys.executable, "-W", "error", "-c", code).stdout == expected


@pytest.mark.parametrize(
    "name",
    [
        "UR_L0_QUEUE_SYNCHRONIZE_NON_BLOCKING",
        "I_MPI_OFFLOAD_COLL_PIPELINE",
        "I_MPI_OFFLOAD_ALLREDUCE_KERNEL_MDFI_AWARE",
    ],
)
def test_variables_have_defaults_that_the_program_may_change(zeusm_run, name):
    """SYCL keeps a queue locked while a thread waits for it, as on the CPU runtime after its initialisation; Intel MPI does
    not use the ways that fail."""
    default = "" if zeusm.runtime().kind == "system" else "0"
    assert zeusm_run("/bin/sh", "-c", f"echo ${name}").stdout == f"{default}\n"
    assert zeusm_run("/bin/sh", "-c", f"echo ${name}", env={name: "1"}).stdout == "1\n"


def test_the_exit_status_is_passed_through(zeusm_run, fresh):
    result = zeusm_run(sys.executable, "-c", "raise SystemExit(7)", fails=True)
    assert result.returncode == 7
    assert result.stderr == ""
    end = "import os; os.kill(os.getpid(), 9)"
    assert zeusm_run(sys.executable, "-c", end, crashes=True).returncode == -signal.SIGKILL


def test_a_command_that_cannot_be_run_is_named(zeusm_run, tmp_path):
    result = zeusm_run("no-such-program", fails=True)
    assert result.returncode == 127
    assert result.stderr == "zeusm run: no-such-program: No such file or directory\n"
    result = zeusm_run("", fails=True)
    assert result.returncode == 127
    assert result.stderr == "zeusm run: the command is empty\n"
    plain = tmp_path / "plain"
    plain.write_text("no program")
    result = zeusm_run(plain, fails=True)
    assert result.returncode == 126
    assert result.stderr == f"zeusm run: {plain}: Permission denied\n"
    assert "COMMAND" in zeusm_run(fails=True).stderr


@pytest.mark.parametrize(
    ("name", "program"), [("wrong.py", "python wrong.py"), ("built", "./built")]
)
def test_a_command_that_is_a_file_of_this_folder_is_told_how_to_run(fresh, tmp_path, name, program):
    (tmp_path / name).write_text("print(1)")
    env = {"ZEUSM_RUNTIME": "cpu"}  # `zeusm check` needs it.
    for command in ("run", "check"):
        result = fresh.run("-m", "zeusm", command, name, env=env, cwd=tmp_path, fails=True)
        assert result.returncode == 127
        how = f"zeusm {command} {program}"
        assert result.stderr == (
            f"zeusm {command}: {name}: it is in this folder, and not in PATH: {how}\n"
        )


def test_options_after_the_command_are_its_own(zeusm_run):
    show = "import sys; print(sys.argv[1:])"
    result = zeusm_run("-v", sys.executable, "-c", show, "-v", "--", "--help")
    assert result.stdout == "['-v', '--', '--help']\n"
    assert str(zeusm.runtime().path) in result.stderr
    assert zeusm_run("--", "/bin/echo", "-v").stdout == "-v\n"


def test_other_libraries_are_still_found(zeusm_run):
    show = "import os; print(os.environ['LD_LIBRARY_PATH'])"
    folder = str(zeusm.runtime().path.parent)
    result = zeusm_run(
        sys.executable,
        "-c",
        show,
        env={"LD_LIBRARY_PATH": f"/first:{os.environ.get('LD_LIBRARY_PATH', '/second')}"},
    )
    assert result.stdout.startswith(f"{folder}:/first:")
    # An empty entry would be the working directory.
    assert environment_for(zeusm.runtime())["LD_LIBRARY_PATH"].strip(":").startswith(folder)


def test_nothing_changes_where_the_systems_loader_serves(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    assert environment_for(SimpleNamespace(kind="system")) == dict(os.environ)


def test_a_library_of_another_name_is_refused(zeusm_run, tmp_path):
    library = tmp_path / "libzeusm_cpu.so"
    library.symlink_to(zeusm.runtime().path)
    for variable in ("ZEUSM_RUNTIME", "ZEUSM_CPU_LIBRARY"):
        result = zeusm_run("true", env={variable: str(library)}, fails=True)
        assert "libze_loader.so.1" in result.stderr
        assert str(library) in result.stderr
    result = zeusm_run("true", env={"ZEUSM_RUNTIME": "nothing"}, fails=True)
    assert "nothing" in result.stderr


class Environment(Fresh):
    """An environment of its own, with the packages of this one."""

    def __init__(self, folder):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        super().__init__(executable=folder / "bin" / "python")
        self.site = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        self.packages = self.site / "packages.pth"
        self.packages.write_text(sysconfig.get_path("purelib") + "\n")

    def zeusm(self, *arguments, **options):
        return self.run("-m", "zeusm", *arguments, **options).stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture
def enabled(environment):
    """An environment in which zeusm is enabled."""
    assert (
        environment.zeusm("enable") == f"zeusm is enabled by {environment.site}/zeusm_start.pth\n"
    )
    yield environment
    environment.zeusm("disable")


def test_programs_of_an_enabled_environment_find_the_device(enabled):
    assert enabled(LIST).stdout == NAMES
    assert LEVEL_ZERO in enabled.run("-m", "dpctl", "-f").stdout
    assert enabled.run("-I", "-W", "error", "-c", LIST).stdout == NAMES


def test_a_spawned_pool_of_an_enabled_environment_finds_the_device(enabled, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\n"
        "def names(_):\n"
        "    import dpctl\n"
        "    return [device.name for device in dpctl.get_devices(backend='level_zero')]\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(names, [0])[0])\n"
    )
    assert enabled.run(program).stdout == NAMES


def test_an_environment_is_enabled_until_it_is_disabled(environment):
    def status(**options):
        return environment.zeusm("status", **options)

    assert status(fails=True) == "zeusm is not enabled\n"
    enabled = environment.zeusm("enable")
    assert environment.zeusm("enable") == enabled
    assert status() == enabled
    off = status(env={"ZEUSM_ENABLE": "0"}, fails=True)
    assert off == enabled + "ZEUSM_ENABLE=0 disables it for this process\n"
    assert environment.zeusm("disable") == f"removed {environment.site}/zeusm_start.pth\n"
    assert environment.zeusm("disable") == "zeusm is not enabled\n"
    assert list(environment.site.iterdir()) == [environment.packages]


@pytest.mark.skipif(zeusm.runtime().kind != "cpu", reason="the system's loader shows a device")
def test_the_variable_disables_it(enabled):
    assert enabled(LIST, env={"ZEUSM_ENABLE": "0"}).stdout == "[]\n"
    assert enabled(LIST, env={"ZEUSM_ENABLE": "1"}).stdout == NAMES


def test_a_word_that_is_no_switch_is_a_warning(enabled):
    result = enabled("import dpctl, dpnp; print(1)", env={"ZEUSM_ENABLE": "disabled"})
    assert result.stdout == "1\n"
    assert result.stderr.count("RuntimeWarning") == 1
    assert "ZEUSM_ENABLE='disabled' is not 1, true, yes, on, 0" in result.stderr


def test_the_start_imports_one_small_module(environment):
    def modules():
        return set(environment("import sys; print(*sys.modules)").stdout.split())

    before = modules()
    environment.zeusm("enable")
    try:
        assert modules() - before == {"zeusm_start"}
        environment(
            "import json, sys; assert 'zeusm' not in sys.modules; import dpctl; assert 'zeusm' in sys.modules"
        )
    finally:
        environment.zeusm("disable")


def test_a_missing_or_damaged_package_does_not_affect_the_start(enabled, tmp_path):
    lines = enabled.packages.read_text()
    enabled.packages.unlink()  # As after `pip uninstall zeusm`.
    try:
        result = enabled("print(1)")
    finally:
        enabled.packages.write_text(lines)
    assert (result.stdout, result.stderr) == ("1\n", "")
    (tmp_path / "zeusm_start.py").write_text("no Python")
    result = enabled("print(1)", env={"PYTHONPATH": str(tmp_path)})
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_a_zeusm_that_cannot_be_imported_is_a_warning(enabled, tmp_path):
    (tmp_path / "zeusm.py").write_text("raise ImportError('damaged')")
    result = enabled(
        "import dpctl, dpctl.memory, dpnp; print(1)", env={"PYTHONPATH": str(tmp_path)}
    )
    assert result.stdout == "1\n"
    assert result.stderr.count("RuntimeWarning") == 1
    for part in ("damaged", "zeusm_start.pth", "ZEUSM_ENABLE=0"):
        assert part in result.stderr


def test_a_folder_that_cannot_be_written_is_named(environment):
    if os.geteuid() == 0:
        # Root may write everywhere, but not to a folder as if it were a file.
        (environment.site / "zeusm_start.pth").mkdir()
        try:
            result = environment.run("-m", "zeusm", "enable", fails=True)
        finally:
            (environment.site / "zeusm_start.pth").rmdir()
            (environment.site / "zeusm_start.pth.new").unlink()
    else:
        environment.site.chmod(0o500)
        try:
            result = environment.run("-m", "zeusm", "enable", fails=True)
        finally:
            environment.site.chmod(0o700)
    assert result.stderr.startswith(f"zeusm enable: {environment.site}/zeusm_start.pth: ")


def test_the_file_is_in_the_users_folder_if_zeusm_is(monkeypatch):
    installed = Path(zeusm.__file__).resolve().parents[1]
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "/environment")
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    for users, expected in (installed, installed), ("/home/.local", Path("/environment")):
        monkeypatch.setattr(site, "getusersitepackages", lambda users=users: str(users))
        assert enable.folder() == expected
        assert expected in enable.folders()


def test_the_command_is_installed():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="zeusm")
    assert command.value == "zeusm.__main__:main"


def test_help_names_the_commands(fresh):
    text = fresh.run("-m", "zeusm", "--help").stdout
    for name in ("run", "check", "enable", "disable", "status"):
        assert f"    {name} " in text
    assert fresh.run("-m", "zeusm", "--version").stdout == f"zeusm {zeusm.__version__}\n"
    assert fresh.run("-m", "zeusm", fails=True).returncode == 2
