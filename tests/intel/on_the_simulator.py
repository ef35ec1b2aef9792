"""A pytest plugin for the simulated GPU (xe-sim/README.md): what cannot pass there, and what is known not to.

No execution unit is simulated. The simulator skips kernels of users' and notes each one in a file, so a test that fails
after it has launched one is skipped. The other differences are listed below by name and reason; what is not listed is
to pass.
"""

from pathlib import Path

import pytest

NOTES = Path("/run/xe-sim/kernels")

DIES = "the driver ends the process"
CONTEXT = "the driver knows pointers of every context"
IPC_SHARED = "the driver opens shared memory as device memory"
SIMULATED = "what the simulator's memory files look like from outside"
SLOW = "SYCL allocates without a pool, and each allocation is a memory file here"

# Tests that are not to be started, by a part of their name.
NOT_RUN = {
    "test_bad_arguments.py::test_constructor": f"{DIES}: host sizes from 2**46 on",
    "test_bad_arguments.py::test_more_than_the_device_has[host]": f"{DIES}: a host size of 2**44",
    "test_differences": f"{DIES}: dpctl asks for such host sizes",
    "test_twin.py::test_failures_are_of_the_same_classes": f"{DIES}: as above, in dpctl",
    "test_async_sycl.py::test_after_an_event_behind_a_host_task": "it does not come to an end here, and why is not known",
    "test_ipc.py::test_queue[shared]": f"{IPC_SHARED}; the child then waits for ever",
    "test_resident_memory_stays_flat_over_100000_objects": SLOW,
    "test_benches.py": SLOW,
    "test_documents.py::test_example[demo.py]": "scikit-learn is not installed here",
}

# Tests that fail, by a part of their name. One that passes after all is told.
FAILS = {
    "test_a_place_can_be_named": CONTEXT,
    "test_another_context_does_not_know_it": CONTEXT,
    "test_arrays_go_to_another_context": CONTEXT,
    "test_a_context_that_the_pointer_is_not_of": CONTEXT,
    "test_another_context_takes_a_copy": CONTEXT,
    "test_to_another_context": CONTEXT,
    "test_memory_goes_where_it_is_asked_to": CONTEXT,
    "test_from_dlpack_of_another_context_is_refused": CONTEXT,
    "test_to_device_of_the_device_copies_only_from_another_context": CONTEXT,
    "test_to_device_of_the_queue_keeps_the_view": "dpnp copies: the queue's context is not told from another",
    "test_bad_tensors_stay_their_producers[device-strides": "device pointers end near 2**64: the other message comes",
    "test_no_host_array_of_the_full_size_is_made": SIMULATED,
    "test_docstrings[zeusm.memory.MemoryIPCShared]": IPC_SHARED,
    "test_socket[shared]": IPC_SHARED,
    "test_file[shared]": IPC_SHARED,
    "test_where_tracing_is_forbidden[shared]": IPC_SHARED,
    "test_twice_is_one_mapping[shared]": IPC_SHARED,
    "test_no_size_is_needed_and_a_smaller_one_is_taken[shared]": IPC_SHARED,
    "test_the_handle_says_what_it_is_of[shared]": IPC_SHARED,
    "test_freed_memory[shared]": IPC_SHARED,
    "test_opened_memory_is_memory[shared]": IPC_SHARED,
    "test_the_host_looks_at_host_and_shared_memory[shared]": IPC_SHARED,
    "test_closing_under_a_view_is_refused[shared]": IPC_SHARED,
    "test_closing_unmaps": SIMULATED,
    "test_import_after_dpctl_has_looked_warns": "there is a GPU here, and the warning speaks of its driver first",
    "test_buffers_are_released_by_threads_too": "a wait comes back while another thread still holds the operands",
}


def pytest_collection_modifyitems(items):
    for item in items:
        for part, reason in NOT_RUN.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.xfail(reason=reason, run=False))
        for part, reason in FAILS.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))


def skipped():
    """How much has been noted."""
    return NOTES.stat().st_size if NOTES.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.kernels_before = skipped()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed and skipped() > item.kernels_before:
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, line, "a kernel of a user's was launched")
    return report
