"""The start and the end of a history: calls within calls, and what its file says of the process."""

import inspect
import json
import typing

import pytest
import zeusm.memory as zm
from snapshots import events

pytestmark = pytest.mark.once


@pytest.mark.parametrize("call", ["zm.record_history(False)", "zm.record_history()"])
def test_calls_within_calls(fresh, call):
    """As of a signal handler, or of a finalizer that the garbage collector runs."""
    fresh(f"""
        import faulthandler, sys
        import zeusm.memory as zm

        faulthandler.dump_traceback_later(60, exit=True)
        NAMES = "_history_start", "_history_stop", "History"

        def within(moment):
            left = moment

            def profile(frame, event, function):
                nonlocal left
                if getattr(function, "__name__", None) in NAMES and frame.f_code.co_name != "profile":
                    left -= 1
                    if left == 0:
                        {call}

            sys.setprofile(profile)
            history = zm.record_history()
            history.stop()
            sys.setprofile(None)
            return left > 0

        moment = 1
        while not within(moment):
            last = zm.record_history(False)
            assert last is None or not last.recording
            with zm.record_history() as history:
                assert history.recording
                memory = zm.MemoryUSMShared(777)
            assert not history.recording
            assert 777 in history.snapshot()["events"]["size"]
            moment += 1
        assert moment >= 4
    """)


def test_a_history_keeps_its_events_if_it_is_stopped_within_the_stop(fresh):
    fresh("""
        import faulthandler, sys
        import zeusm.memory as zm

        faulthandler.dump_traceback_later(60, exit=True)
        history = zm.record_history()
        memory = zm.MemoryUSMShared(777)

        def profile(frame, event, function):
            if event == "c_return" and function.__name__ == "_history_stop":
                sys.setprofile(None)
                global other
                other = zm.record_history()

        sys.setprofile(profile)
        history.stop()
        assert 777 in history.snapshot()["events"]["size"]
        assert other.recording and not history.recording
        later = zm.MemoryUSMShared(778)
        other.stop()
        assert 778 in other.snapshot()["events"]["size"]
    """)


@pytest.mark.parametrize("arguments", [["caf\udce9.txt"], ["\ud800"], [1, None]])
def test_arguments_that_are_no_text(tmp_path, monkeypatch, arguments, fresh):
    monkeypatch.setattr("sys.argv", arguments)
    path = tmp_path / "history.json"
    with zm.record_history() as history:
        zm.MemoryUSMShared(100)
    history.save(path)
    argv = json.loads(path.read_text())["process"]["argv"]
    assert len(argv) == len(arguments)
    assert all(each.isascii() for each in argv)
    fresh.run("-m", "zeusm", "memory", "report", path)


# Not shared memory, which cannot be exported where it migrates.
@pytest.mark.parametrize("memory_class", [zm.MemoryUSMDevice, zm.MemoryUSMHost])
def test_the_free_by_the_end_of_a_handle_has_a_stack(memory_class):
    with zm.record_history() as history:
        memory = memory_class(1000)
        handle = memory.ipc_handle()
        del memory
        handle.close()
    freed = [event for event in events(history.snapshot(), "free") if event["size"] == 1000]
    assert len(freed) == 1
    assert freed[0]["stack"] >= 0


def test_annotations_can_be_evaluated():
    functions = [zm.record_history, zm.snapshot]
    functions += [each for each in vars(zm.History).values() if inspect.isfunction(each)]
    for function in functions:
        assert typing.get_type_hints(function)["return"] is not None
