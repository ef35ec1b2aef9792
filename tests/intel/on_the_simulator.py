"""A pytest plugin for the simulated GPU (xe-sim/README.md): what cannot pass there, and what is known not to.

No execution unit is simulated. The simulator skips kernels of users' and notes each one in a file, so a test that fails
after it has launched one is skipped. The other differences are listed below by name and reason: a listed test that
passes is a failure, and a test that is not listed is to pass.
"""

from pathlib import Path

import pytest

NOTES = Path("/run/xe-sim/kernels")
ENVIRONMENT = Path("/run/xe-sim/environment").read_text().splitlines()
MACHINE = dict(line.split("=", 1) for line in ENVIRONMENT)["XE_SIM_MACHINE"]
# Machines whose driver moves shared memory between the host and the device.
MOVING = {"bmg", "bmg2"}
ONE_GPU = {"lnl", "bmg"}

DIES = "dpctl hands the driver a host size from 2**44 on, at which the driver ends the process"
ONE_CONTEXT = "SYCL's contexts of all the driver's devices share one of Level Zero, so that the pointer is of both"
IPC_SHARED = "the driver opens shared memory as device memory"
DPCTL = "dpctl does something else with this driver, and it is its part that fails"
HOST_EVENT = "work that waits for an event of the host's, and SYCL's work after it, now and then wait for ever"
FORK = "the driver does not work in a fork's child, and zeusm's errors there say so"
ALONE = "each block of shared memory is an allocation of its own"
CPU_RUNTIME = "it is about the CPU runtime"
SIMULATED = "what the simulator's memory files look like from outside"
SLOW = "SYCL allocates without a pool, and each allocation is a memory file here"

# Tests that are not to be started, by a part of their name.
NOT_RUN = {
    "test_differences.py::test_allocation_error[host]": DIES,
    "test_differences.py::test_a_size_that_no_machine_has[host]": DIES,
    "test_twin.py::test_failures_are_of_the_same_classes[too large-MemoryUSMHost]": DIES,
    "test_ipc.py::test_queue[shared]": f"{IPC_SHARED}; the child then waits for ever",
    "test_faults.py::test_every_call_may_fail": f"{CPU_RUNTIME}: a library stands before it",
    "test_kernels.py": "kernels of users'",
    "test_lifetime.py": SLOW,
    "test_benches.py": SLOW,
    "test_documents.py::test_example[demo.py]": "scikit-learn is not installed here",
}

# Tests that fail, by a part of their name.
FAILS = {
    "test_fork.py::": FORK,
    "test_a_child_exports_what_it_inherited_as_its_own": FORK,
    "test_pool.py::test_after_a_fork": FORK,
    "test_model.py": FORK,
    "test_pool.py::test_growth_is_as_told[shared]": ALONE,
    "test_docstrings[zeusm.memory.MemoryPool.used_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolReport]": ALONE,
    "test_docstrings[zeusm.memory.PoolReport.allocated_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolReport.peak_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolReport.used_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolStatistics.allocated_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolStatistics.peak_bytes]": ALONE,
    "test_docstrings[zeusm.memory.PoolStatistics.used_bytes]": ALONE,
    "test_no_host_array_of_the_full_size_is_made": SIMULATED,
    "test_closing_unmaps": SIMULATED,
    "test_an_exporter_short_of_descriptors_answers_later": SIMULATED,
    "test_a_filter_of_system_calls": SIMULATED,
    "test_docstrings[zeusm.memory.MemoryIPCShared]": IPC_SHARED,
    "test_opened_memory_is_memory[shared]": IPC_SHARED,
    "test_the_host_looks_at_host_and_shared_memory[shared]": IPC_SHARED,
    "test_closing_under_a_view_is_refused[shared]": IPC_SHARED,
}

# Tests that fail on some machines only.
FAILS_ON = {
    "test_another_context_does_not_know_it": (ONE_GPU, ONE_CONTEXT),
    "test_a_context_that_the_pointer_is_not_of": (ONE_GPU, ONE_CONTEXT),
    "test_socket[shared]": (MOVING, IPC_SHARED),
    "test_file[shared]": (MOVING, IPC_SHARED),
    "test_where_tracing_is_forbidden[shared]": (MOVING, IPC_SHARED),
    "test_twice_is_one_mapping[shared]": (MOVING, IPC_SHARED),
    "test_no_size_is_needed_and_a_smaller_one_is_taken[shared]": (MOVING, IPC_SHARED),
    "test_the_handle_says_what_it_is_of[shared]": (MOVING, IPC_SHARED),
    "test_freed_memory[shared]": (MOVING, IPC_SHARED),
    "test_closing_under_a_slice_is_refused[shared]": (
        MOVING,
        "what the host wrote to shared memory is not moved to the device by an export",
    ),
}

# Tests whose outcome is another one from time to time: the only ones that may do either.
SOMETIMES = {
    "test_where_dpctl_ends_the_process[freed pointer]": DPCTL,
    "test_more_than_there_is_to_copy": DPCTL,
    "test_copies_between_contexts": SIMULATED,
    "test_bad_tensors_stay_their_producers[device-strides-touches0]": "device pointers may end near 2**64: then the other message comes",
    "test_snippet[async.md:": HOST_EVENT,
    "test_after_an_event_behind_a_host_task": HOST_EVENT,
    "test_buffers_are_released_by_threads_too": "a wait comes back while another thread still holds the operands",
    "test_import_after_dpctl_has_looked_warns": "there is a GPU here, and the warning speaks of its driver first",
}


def marks(name):
    for part, reason in NOT_RUN.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, run=False)
    for part, reason in FAILS.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, strict=True)
    for part, (machines, reason) in FAILS_ON.items():
        if part in name and MACHINE in machines:
            yield pytest.mark.xfail(reason=reason, strict=True)
    for part, reason in SOMETIMES.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, strict=False)


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in marks(item.nodeid):
            item.add_marker(mark)


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
