"""A pytest plugin for the simulated GPU (xe-sim/README.md): it skips or marks the tests that cannot pass there.

Execution units are not simulated. The simulator skips user kernels and appends the name of each one to a file. The tests
that need the results of user kernels are listed below; such a test is reported as skipped if it fails after it has launched
one. All other known failures are listed by name, with the reason. A listed test that passes counts as a failure, and every test that is not listed must pass. With `--check-lists`, a
listed name that is part of no collected test is an error.
"""

from pathlib import Path

import pytest

NOTES = Path("/run/xe-sim/kernels")
ENVIRONMENT = Path("/run/xe-sim/environment").read_text().splitlines()
MACHINE = dict(line.split("=", 1) for line in ENVIRONMENT)["XE_SIM_MACHINE"]
DISCRETE = {"bmg", "bmg2"}
# Machines whose driver migrates shared memory between the host and the device.
MOVING = DISCRETE
ONE_GPU = {"lnl", "bmg"}

DIES = "dpctl passes host sizes of 2**44 and more to the driver, which then aborts the process"
ONE_CONTEXT = "SYCL contexts with all devices of the driver share one Level Zero context, so the pointer belongs to both"
IPC_SHARED = "the driver opens shared memory as device memory"
DPCTL = "dpctl behaves differently with this driver, and the dpctl part of the test fails"
MIGRATES = "zeusm does not export shared memory that migrates"
WHOLE = "host accesses wait for all work on an allocation, which migrates as a whole"
FORK = "the driver does not support forked children, and zeusm reports that as an error"
ALONE = "each block of shared memory is a separate allocation"
CPU_RUNTIME = "the test is specific to the CPU runtime"
DOCTOR = "the doctor reports what the simulated machine lacks: the kernel driver in /sys, and results of kernels"
SIMULATED = "the simulator's memfds are visible in the process, unlike the kernel's buffers"
SLOW = "SYCL allocates without a pool, and each allocation creates a memfd in the simulator"

# Tests that are not run, by a part of their name.
NOT_RUN = {
    "test_differences.py::test_allocation_error[host]": DIES,
    "test_more_than_there_is_to_copy": "dpctl's copies beyond the memory may fault on the GPU, and its wait then never ends",
    "test_twin.py::test_failures_are_of_the_same_classes[too large-MemoryUSMHost]": DIES,
    "test_ipc.py::test_queue[shared]": f"{IPC_SHARED}; the child then never exits",
    "python/test_faults.py::": f"{CPU_RUNTIME}: the fault driver forwards to it",
    "test_several_devices.py::": CPU_RUNTIME,
    "test_presented_devices.py::": CPU_RUNTIME,
    "test_command_lists.py::": CPU_RUNTIME,
    "test_an_operation_in_flight_retains_none_of_other_queues": CPU_RUNTIME,
    "test_dpctl_passes_its_own_tests_on_several_gpus": CPU_RUNTIME,
    "test_kernels.py": "it launches user kernels",
    "test_two_processes_request_too_much": "it launches user kernels",
    "test_kernel_tables.py": "it launches user kernels",
    "test_host_queue.py::test_accesses": f"{CPU_RUNTIME}, and launches user kernels",
    # The child's failure ends the main thread, and the others run on.
    "test_history.py::test_forks_beside_threads_that_record": FORK,
    "test_devices.py": CPU_RUNTIME,
    "test_onemkl.py": CPU_RUNTIME,
    "test_snippet[docs/cpu.md:": CPU_RUNTIME,
    "test_snippet[docs/howto/devices.md:": CPU_RUNTIME,
    "test_lifetime.py": SLOW,
    "test_benches.py": SLOW,
    "test_documents.py::test_example[demo.py]": "scikit-learn is not installed in this root",
}

# Tests that fail, by a part of their name.
FAILS = {
    "test_a_wrong_choice_of_the_opencl_runtime_is_named_with_its_remedy": CPU_RUNTIME,
    "test_current_folder.py::test_a_users_program_imports_them[check]": CPU_RUNTIME,
    "test_current_folder.py::test_the_doctor_is_not_misled": DOCTOR,
    "test_current_folder.py::test_a_folder_that_was_removed": DOCTOR,
    "test_fork.py::": FORK,
    "test_a_child_exports_what_it_inherited_as_its_own": FORK,
    "test_pool.py::test_after_a_fork": FORK,
    "test_history.py::test_a_forks_child_records_by_itself": FORK,
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
    "test_userfaultfd_is_forbidden_after_the_first_allocation": f"{CPU_RUNTIME}, which moves memory by userfaultfd",
    "test_no_proc": f"{CPU_RUNTIME}, whose handles name files in /proc",
    "test_other_libraries_are_still_found": f"{CPU_RUNTIME}: for the system's driver no library is added",
    "test_a_library_of_another_name_is_refused": f"{CPU_RUNTIME}: for the system's driver no library is added",
    "test_a_filter_of_system_calls": SIMULATED,
    "test_docstrings[zeusm.memory.MemoryIPCShared]": IPC_SHARED,
    "test_opened_memory_is_memory[shared]": IPC_SHARED,
    "test_the_host_looks_at_host_and_shared_memory[shared]": IPC_SHARED,
    "test_closing_under_a_view_is_refused[shared]": IPC_SHARED,
}

# Tests that fail on some machines only.
FAILS_ON = {
    "test_threads_shortage.py::": (ONE_GPU, ONE_CONTEXT),
    "test_a_failure_counts_the_memory_that_was_short[True]": ({"lnl"}, "the GPU is integrated"),
    "test_a_failure_counts_the_memory_that_was_short[False]": (MOVING, "the GPU is discrete"),
    "test_a_context_that_the_pointer_is_not_of": (ONE_GPU, ONE_CONTEXT),
    "test_what_is_not_touched_is_not_waited_for[shared]": (MOVING, WHOLE),
    "test_socket[shared]": (MOVING, MIGRATES),
    "test_file[shared]": (MOVING, MIGRATES),
    "test_where_tracing_is_forbidden[shared]": (MOVING, MIGRATES),
    "test_twice_is_one_mapping[shared]": (MOVING, MIGRATES),
    "test_no_size_is_needed_and_a_smaller_one_is_taken[shared]": (MOVING, MIGRATES),
    "test_the_handle_says_what_it_is_of[shared]": (MOVING, MIGRATES),
    "test_freed_memory[shared]": (MOVING, MIGRATES),
    "test_closing_under_a_slice_is_refused[shared]": (MOVING, MIGRATES),
    "test_with_closes[shared]": (MOVING, MIGRATES),
    "test_another_machine[shared]": (MOVING, MIGRATES),
    "test_another_device[shared]": (MOVING, MIGRATES),
    "test_any_way_out_comes_after_what_was_pending[shared-another process's handle]": (
        MOVING,
        MIGRATES,
    ),
}

# Tests with a nondeterministic outcome on some machines, which may pass or fail.
SOMETIMES_ON = {
    "test_a_host_access_waits_for_the_whole_allocation_where_it_migrates": (
        {"lnl"},
        "it does not migrate on an integrated GPU",
    ),
}

# The same on all machines.
SOMETIMES = {
    "test_host_access_waits_for_a_blocking_call_of_another_thread_if_memory_migrates": (
        f"{CPU_RUNTIME}: it reads bytes during the device's work on them, which migrates them"
    ),
    "test_a_wait_behind_a_host_task_lets_others_submit": "two threads deadlock in the driver (docs/gpus.md)",
    "test_where_dpctl_ends_the_process[freed pointer]": DPCTL,
    "test_copies_between_contexts": SIMULATED,
    "test_bad_tensors_stay_their_producers[device-strides-touches0]": "a device pointer near 2**64 produces another message",
    "test_import_after_dpctl_has_looked_warns": "a GPU is present, so the warning names its driver first",
}

# Tests of the documents' snippets that fail, by a part of the snippet.
FAILS_IN_SNIPPETS = {
    '"level_zero:cpu:0"': CPU_RUNTIME,
    'get_context("fork")': FORK,
}

# Tests whose assertions are on the results of user kernels, by a part of their name. They may pass: a skipped kernel that
# copies leaves the bytes that were in the memory before.
NEEDS_KERNELS = [
    "test_array.py::TestAsarray::test_usm_of_another_kind_is_copied",
    "test_array.py::TestCopies::test_from_host_touches_only_the_elements",
    "test_array.py::TestCopies::test_to_host",
    "test_array_objects.py::test_pickles",
    "test_array_objects.py::test_copies",
    "test_array_objects.py::test_assignment_is_numpys",
    "test_array_objects.py::test_assignment_of_usm",
    "test_array_views.py::test_any_chain_of_views_is_numpys",
    "test_array_views.py::test_writing_to_any_view_leaves_the_rest",
    "test_array_views.py::test_any_strides_are_numpys_or_refused",
    "test_kernels_are_waited_for",
    "test_dpnp_computes_in_place",
    "test_doctor.py::test_this_machine",
    "test_documents.py::",
    "test_gallery.py::test_the_picture_is_the_programs[filter]",
    "test_results_of_dpnp_need_no_wait",
    "test_from_dlpack_is_a_view_on_the_shared_queue",
    "test_dpnp_asarray_copies",
    "test_asarray_with_a_place_copies",
    "test_of_a_capsule_is_waited_for",
    "test_with_an_array_of_the_peer",
    "test_both_of_zeusm",
    "test_as_the_output",
    "test_by_dlpack_in_the_shared_queue",
    "test_memory_gives_its_queue_through_a_view",
    "test_tensor_functions_take_what_the_host_can_access",
    "test_fields_that_are_even_reach_peers_in_place",
    "test_of_dpnp_kernels",
    "test_arguments_of_kernels",
]


# With several GPUs, zeusm does not open memory of the same process, which tests do for simplicity. test_ipc.py and test_model.py
# test it with memory of another process.
OWN_MEMORY = "memory of this process cannot be opened"


def marks(item):
    name = item.nodeid
    code = item.callspec.params.get("code") if "test_snippet" in name else None
    for part, reason in FAILS_IN_SNIPPETS.items():
        if code is not None and part in code:
            yield pytest.mark.xfail(reason=reason, strict=True)
    for part, reason in NOT_RUN.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, run=False)
    for part, reason in FAILS.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, strict=True)
    for part, (machines, reason) in FAILS_ON.items():
        if part in name and MACHINE in machines:
            yield pytest.mark.xfail(reason=reason, strict=True)
    for part, (machines, reason) in SOMETIMES_ON.items():
        if part in name and MACHINE in machines:
            yield pytest.mark.xfail(reason=reason, strict=False)
    for part, reason in SOMETIMES.items():
        if part in name:
            yield pytest.mark.xfail(reason=reason, strict=False)


def pytest_addoption(parser):
    parser.addoption(
        "--check-lists", action="store_true", help="fail if a listed test is not collected"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("check_lists"):
        listed = [*NOT_RUN, *FAILS, *FAILS_ON, *SOMETIMES, *NEEDS_KERNELS]
        names = [item.nodeid for item in items]
        dead = [part for part in listed if not any(part in name for name in names)]
        if dead:
            raise pytest.UsageError(f"no test has these names: {', '.join(dead)}")
    for item in items:
        if item.path.name == "test_model.py":
            item.module.dpnp = None  # dpnp copies strided arrays by user kernels.
        for mark in marks(item):
            item.add_marker(mark)


def skipped():
    """The size of the file of skipped kernels, which grows with each one."""
    return NOTES.stat().st_size if NOTES.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.kernels_before = skipped()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    needs_kernels = any(part in item.nodeid for part in NEEDS_KERNELS)
    if report.failed and needs_kernels and skipped() > item.kernels_before:
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, line, "a user kernel was launched")
    output = (report.longreprtext, report.capstdout) if report.failed else ()
    if MACHINE not in ONE_GPU and any(OWN_MEMORY in text for text in output):
        path, line, _ = item.location
        report.outcome, report.longrepr = "skipped", (path, line, "with several GPUs")
    return report
