"""Files that `zeusm memory` and `History.save` write: to their end, or not at all."""

import errno
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import zeusm.memory
from histories import simulate
from zeusm._output import replacing

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
@pytest.mark.parametrize("before", [None, b"earlier"])
def test_a_write_that_fails_names_the_output_and_leaves_the_folder_as_it_was(
    history, action, before
):
    output = history.with_name("output.txt")
    if before is not None:
        output.write_bytes(before)
    names = set(os.listdir(history.parent))
    # The limit would also hold for the memory of the simulated GPU.
    env = os.environ | {"ZEUSM_RUNTIME": "cpu"}
    run = memory(action, history, output, env=env, preexec_fn=limit_files)
    assert (run.returncode, run.stderr) == (2, f"zeusm memory: {output}: File too large\n")
    assert set(os.listdir(history.parent)) == names
    assert before is None or output.read_bytes() == before


def test_a_reader_that_wants_no_more(history):
    reader, writer = os.pipe()
    os.close(reader)
    run = memory("report", history, "/dev/stdout", stdout=writer)
    os.close(writer)
    assert (run.returncode, run.stderr) == (1, "")


def test_a_history_that_cannot_be_saved_leaves_the_earlier_one(tmp_path, fresh):
    code = """
        import resource, sys
        import zeusm.memory as zm

        with zm.record_history() as history:
            memory = zm.MemoryUSMShared(1000)
        history.save(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
        try:
            history.save(sys.argv[1])
        except OSError as error:
            print(error)
    """
    for name in "history.json", "history.json.gz":
        path = tmp_path / name
        assert fresh(code, path).stdout == f"[Errno 27] File too large: '{path}'\n"
        assert memory("report", path, tmp_path / "page.html").returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["history.json", "history.json.gz", "page.html"]


def test_the_draft_has_the_name_the_mode_and_the_place_of_the_file(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    file, link = folder / "file.gz", tmp_path / "link"
    file.write_text("earlier")
    file.chmod(0o640)
    link.symlink_to(file)
    with replacing(str(link)) as draft, open(draft, "w") as opened:
        assert os.path.basename(draft) == "file.gz"
        opened.write("later")
        assert file.read_text() == "earlier"
    assert (link.is_symlink(), file.read_text()) == (True, "later")
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(folder) == ["file.gz"]


def test_a_new_file_has_the_usual_mode(tmp_path):
    usual, file = tmp_path / "usual", tmp_path / "file"
    usual.touch()
    with replacing(str(file)) as draft, open(draft, "w"):
        pass
    assert file.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES])
def test_a_file_that_cannot_be_replaced_is_written(tmp_path, monkeypatch, number):
    """As one that a container mounts, or another user's in a sticky folder."""

    def fails(*names):
        raise OSError(number, "it stays", *names)

    monkeypatch.setattr(os, "replace", fails)
    file = tmp_path / "file"
    file.write_text("earlier and longer")
    with replacing(str(file)) as draft, open(draft, "w") as opened:
        opened.write("later")
    assert file.read_text() == "later"
    with pytest.raises(OSError, match="it stays"), replacing(f"{file}.new") as draft:
        open(draft, "w").close()
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize(
    ("owner", "mode"), [((1000, 1000), 0o660), ((1000, 1001), 0o664), ((1000, 1002), 0o666)]
)
def test_a_file_of_another_user_stays_theirs(fresh, owner, mode):
    code = """
        import os, sys
        from zeusm._output import replacing

        os.setgroups([1000])
        os.setgid(1001)
        os.setuid(1001)
        with replacing(sys.argv[1]) as draft, open(draft, "w") as opened:
            opened.write("later")
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        file = Path(folder, "file")
        file.write_text("earlier")
        os.chown(file, *owner)
        file.chmod(mode)
        fresh(code, file)
        assert file.read_text() == "later"
        found = file.stat()
        assert ((found.st_uid, found.st_gid), found.st_mode & 0o777) == (owner, mode)
        assert os.listdir(folder) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_the_group_of_a_file_is_kept(fresh):
    code = """
        import os, sys
        from zeusm._output import replacing

        os.setgroups([1000])
        os.setgid(1001)
        os.setuid(1001)
        before = os.stat(sys.argv[1]).st_ino
        with replacing(sys.argv[1]) as draft, open(draft, "w") as opened:
            opened.write("later")
        print(os.stat(sys.argv[1]).st_ino != before)
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        file = Path(folder, "file")
        file.write_text("earlier")
        os.chown(file, 1001, 1000)
        assert fresh(code, file).stdout == "True\n"
        assert (file.stat().st_uid, file.stat().st_gid) == (1001, 1000)


def test_pipes_devices_and_open_files_are_written_themselves(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in str(pipe), os.devnull, "/dev/stdout", "/proc/self/fd/1", f"{tmp_path}/":
        with replacing(path) as draft:
            assert draft == path


def test_a_path_without_a_folder_is_named(tmp_path):
    history = zeusm.memory.record_history()
    history.stop()
    path = tmp_path / "absent" / "history.json"
    with pytest.raises(FileNotFoundError) as raised:
        history.save(path)
    assert (raised.value.filename, raised.value.errno) == (str(path), errno.ENOENT)
