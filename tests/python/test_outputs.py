"""Files that `zeusm memory` and `History.save` write."""

import errno
import json
import os
import resource
import subprocess
import sys

import pytest
import zeusm.memory
from histories import simulate

pytestmark = pytest.mark.once

ACTIONS = {
    "report": ["report"],
    "perfetto": ["export", "--to", "perfetto"],
    "pytorch": ["export", "--to", "pytorch"],
    "flamegraph": ["export", "--to", "flamegraph"],
}
#: In bytes, the largest file that a process with a limit can write: as a disk that is full after it.
LIMIT = 64


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps(simulate(50, seed=1)))
    return path


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, resource.RLIM_INFINITY))


def memory(action, history, output, **options):
    command = [sys.executable, "-m", "zeusm", "memory", *ACTIONS[action], history, "-o", output]
    return subprocess.run(
        command, stderr=subprocess.PIPE, text=True, timeout=100, check=False, **options
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_the_history_is_no_output(history, action):
    before = history.read_bytes()
    link = history.with_name("link")
    link.symlink_to(history)
    for output in history, link:
        run = memory(action, history, output)
        assert run.returncode == 2
        assert run.stderr.startswith(f"zeusm memory: {history}: the output would overwrite")
        assert history.read_bytes() == before


@pytest.mark.parametrize("action", ACTIONS)
def test_a_write_that_fails_names_the_output(history, action):
    output = history.with_name("output.txt")
    # The limit would also hold for the memory of the simulated GPU.
    env = os.environ | {"ZEUSM_RUNTIME": "cpu"}
    run = memory(action, history, output, env=env, preexec_fn=limit_files)
    assert (run.returncode, run.stderr) == (2, f"zeusm memory: {output}: File too large\n")


def test_a_summary_that_cannot_be_printed(history):
    command = [sys.executable, "-m", "zeusm", "memory", "summary", history]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
    assert (run.returncode, run.stderr) == (1, "zeusm: [Errno 28] No space left on device\n")


def test_a_reader_that_wants_no_more(history):
    reader, writer = os.pipe()
    os.close(reader)
    run = memory("report", history, "/dev/stdout", stdout=writer)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


def test_a_history_that_cannot_be_saved(tmp_path, fresh):
    code = """
        import resource, sys
        import zeusm.memory as zm

        with zm.record_history() as history:
            memory = zm.MemoryUSMShared(1000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
        try:
            history.save(sys.argv[1])
        except OSError as error:
            print(error)
    """
    for name in "history.json", "history.json.gz":
        assert fresh(code, tmp_path / name).stdout == "[Errno 27] File too large\n"


def test_a_path_without_a_folder_is_named(tmp_path):
    history = zeusm.memory.record_history()
    history.stop()
    path = tmp_path / "absent" / "history.json"
    with pytest.raises(FileNotFoundError) as raised:
        history.save(path)
    assert (raised.value.filename, raised.value.errno) == (str(path), errno.ENOENT)
