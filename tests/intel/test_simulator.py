"""The simulator reports unsupported kernels by name."""

from on_the_simulator import NOTES


def test_a_users_kernel_is_named(program):
    program(
        """
        import dpnp

        dpnp.sin(dpnp.arange(16, dtype="f4")).sycl_queue.wait()
        """
    )
    assert "sin" in NOTES.read_text()
    assert "linear_sequence_step_kernel" in NOTES.read_text()
