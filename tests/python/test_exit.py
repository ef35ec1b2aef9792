"""The exit of the interpreter."""


def test_queues_are_released(fresh):
    """zeusm caches the queues that it was given. A SYCL context that is alive after the exit keeps its kernels, which the
    driver may no longer know when SYCL releases them."""
    result = fresh(
        """
        import atexit
        import weakref

        alive = []
        atexit.register(lambda: print([queue() is not None for queue in alive]))
        atexit.register(lambda: use())  # Runs after zeusm's function.

        import dpctl
        import zeusm.memory

        class Queue(dpctl.SyclQueue):
            "A queue that can be referred to weakly."

        def use():
            queue = Queue()
            zeusm.memory.MemoryUSMDevice(64, queue=queue).memset()
            alive.append(weakref.ref(queue))

        use()
        assert alive[0]() is not None
        atexit.register(use)  # Runs before zeusm's function.
        """
    )
    assert result.stdout == "[False, False, False]\n"
