"""Which command lists SYCL uses on the CPU runtime: its batches of regular ones have defects that programs run into."""

import pytest

pytest.importorskip("dpnp")

# Counts the command lists that are created.
COUNTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int regular, immediate;

int zeCommandListCreate(void *context, void *device, const void *desc, void **list)
{
    regular++;
    return ((int (*)(void *, void *, const void *, void **))dlsym(RTLD_NEXT, "zeCommandListCreate"))(context, device, desc,
                                                                                                  list);
}

int zeCommandListCreateImmediate(void *context, void *device, const void *desc, void **list)
{
    immediate++;
    return ((int (*)(void *, void *, const void *, void **))dlsym(RTLD_NEXT, "zeCommandListCreateImmediate"))(
        context, device, desc, list);
}
"""

PROGRAM = """
    import ctypes, os, zeusm
    import dpctl, dpnp

    library = ctypes.CDLL(os.environ["ZEUSM_RUNTIME"])
    counts = [ctypes.c_int.in_dll(library, name) for name in ("regular", "immediate")]
    before = [count.value for count in counts]
    queue = dpctl.SyclQueue("level_zero:gpu")
    array = dpnp.full(1000, 3, dtype="i4", sycl_queue=queue)
    assert (array + array).asnumpy().tolist() == [6] * 1000
    regular, immediate = (count.value - old for count, old in zip(counts, before))
    assert immediate > 0 and (regular > 0) == {is_regular}, (regular, immediate)
"""


@pytest.mark.parametrize(
    ("variables", "is_regular"),
    [({}, False), ({"UR_L0_USE_IMMEDIATE_COMMANDLISTS": "0"}, True)],
    ids=["default", "batches"],
)
def test_sycl_uses_immediate_command_lists(fresh, stand_in, variables, is_regular):
    library = {"ZEUSM_RUNTIME": str(stand_in(COUNTS))}
    fresh(PROGRAM.format(is_regular=is_regular), env=library | variables)
