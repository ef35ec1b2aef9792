"""`await event`."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import zeusm.memory
from conftest import in_time

pytestmark = pytest.mark.once


class WithoutThreads(ThreadPoolExecutor):
    def submit(self, *_arguments, **_keywords):
        raise AssertionError("a thread is used")


def test_a_complete_event_needs_no_thread():
    event = zeusm.memory.MemoryUSMShared(64).memset_async(1)
    event.wait()

    async def main():
        asyncio.get_running_loop().set_default_executor(WithoutThreads())
        turns = []
        other = asyncio.create_task(append_to(turns))
        assert await event is True
        assert turns == [1]  # The other task had its turn.
        await other

    async def append_to(turns):
        turns.append(1)

    asyncio.run(main())


def test_a_cancelled_await_ends_its_thread(busy):
    def attempt(turns):
        event = busy(turns)

        async def main():
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            task = asyncio.ensure_future(event)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(int)  # It needs the only thread.
            return not event.is_complete

        return asyncio.run(main())

    in_time(attempt)
