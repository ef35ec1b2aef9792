"""`await event`, in the running loop of asyncio."""

import asyncio
import threading
from collections.abc import Generator
from typing import Any

from zeusm._zeusm import Event

#: Seconds between two looks whether the await was cancelled.
SLICE = 0.05


def iterator(event: Event) -> Generator[Any, None, bool]:
    """The iterator of the await."""
    loop = asyncio.get_running_loop()
    if event.wait(0):
        return asyncio.sleep(0, True).__await__()  # Other tasks of the loop get their turn, too.
    is_over = threading.Event()

    def wait() -> bool:
        """Wait in a thread of the loop's executor, for which the exit of `asyncio.run` waits."""
        while not is_over.is_set():
            if event.wait(SLICE):
                return True
        return False

    future = loop.run_in_executor(None, wait)
    future.add_done_callback(lambda _: is_over.set())
    return future.__await__()
