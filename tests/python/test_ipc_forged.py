"""Forged and modified handles with valid checksums, and handles of other users."""

import os
import struct
import textwrap
import zlib

import pytest
import zeusm.memory as zm
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once

# The fields of a handle for the size of the allocation and for the range.
WHOLE, OFFSET, SIZE = slice(148, 156), slice(156, 164), slice(164, 172)
N = 100_000


@pytest.fixture(scope="module")
def memory():
    memory = zm.MemoryUSMHost(N)
    memory.memset(5)
    return memory


def checked(raw):
    return raw[:-4] + struct.pack("<I", zlib.crc32(raw[:-4]))


def test_a_larger_range_while_the_memory_is_open(memory):
    raw = bytearray(memory.ipc_handle().to_bytes())
    with zm.IPCMemoryHandle.open(bytes(raw)) as opened:
        raw[WHOLE] = raw[SIZE] = struct.pack("<Q", 1 << 30)
        raw[OFFSET] = bytes(8)
        with pytest.raises(zm.IPCError, match=f"not made by process {os.getpid()}, or was changed"):
            zm.IPCMemoryHandle.open(checked(bytes(raw)))
        assert opened.tobytes() == memory.tobytes()


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_no_changed_handle_opens(memory, is_open):
    raw = memory.ipc_handle().to_bytes()
    # The opened object retains the mapping, which a modified handle must not reach.
    opened = zm.IPCMemoryHandle.open(raw) if is_open else None
    content = st.binary(min_size=1, max_size=64) | st.integers(0, 2**64 - 1).map(
        lambda value: struct.pack("<Q", value)
    )

    @settings(max_examples=int(os.environ.get("ZEUSM_FUZZ", "300")), deadline=None, database=None)
    @given(st.lists(st.tuples(st.integers(0, len(raw) - 5), content), min_size=1, max_size=4))
    def check(changes):
        changed = bytearray(raw)
        for place, part in changes:
            part = part[: len(raw) - 4 - place]
            changed[place : place + len(part)] = part
        changed = checked(bytes(changed))
        if changed != raw:
            with pytest.raises(zm.IPCError):
                zm.IPCMemoryHandle.open(changed)

    check()
    with zm.IPCMemoryHandle.open(raw) as again:
        assert again.tobytes() == memory.tobytes()
        assert opened is None or opened._pointer == again._pointer


# zeusm is imported first, as another user may not read the interpreter's files.
BECOME = """
    import os, subprocess, sys, zeusm.memory as zm

    def become(user):
        os.setuid(user)
"""
EXPORT = """
    for user in map(int, sys.argv[1:]):
        become(user)
    memory = zm.MemoryUSMHost(64)
    print(memory.ipc_handle().to_bytes().hex(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_users_memory(fresh):
    """Root may trace processes of other users, but zeusm rejects their exports; their processes answer no other user."""
    other = 65534
    fresh(
        BECOME
        + f"""
    def exporter(*user):
        return subprocess.Popen(
            [sys.executable, "-c", {textwrap.dedent(BECOME + EXPORT)!r}, *map(str, user)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def refusal(raw):
        try:
            zm.IPCMemoryHandle.open(bytes.fromhex(raw))
        except zm.IPCError as error:
            return str(error)

    with exporter({other}) as theirs, exporter() as roots:
        their_handle, roots_handle = theirs.stdout.readline(), roots.stdout.readline()
        assert "of user {other}" in refusal(their_handle), refusal(their_handle)
        assert refusal(roots_handle) is None
        become({other})
        assert "answers processes of its own user" in refusal(roots_handle), refusal(roots_handle)
        assert refusal(their_handle) is None, refusal(their_handle)
        theirs.stdin.close()
        roots.stdin.close()
"""
    )
