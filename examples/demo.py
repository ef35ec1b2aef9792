"""zeusm on real data: handwritten digits in USM memory that packages share without a copy.

`make demo` runs it in both environments. It prints one line for each step, and exits with an error when the pointer,
the kind, the context or the content of a step is not the expected one.
"""

import importlib.util
import sys
import zlib

import numpy as np
import zeusm.memory
from sklearn.datasets import load_digits

# isort: split
import dpctl
import dpctl.memory
import dpnp

try:
    from dpnp.tensor import usm_ndarray
except ImportError:  # dpnp before 0.19 uses dpctl's array.
    from dpctl.tensor import usm_ndarray


class Table:
    """Prints each step, and checks it."""

    def __init__(self):
        self.line("step", "kind", "pointer", "context", "checksum")

    def line(self, step, *columns):
        print("{:<48} {:<8} {:<16} {:<10} {}".format(step, *columns))

    def step(self, name, memory, same_as, content, wanted):
        """Check that `memory` is the memory of `same_as`, and that `content`, read through it, equals `wanted`."""
        self.line(
            name,
            memory.get_usm_type(),
            f"{memory._pointer:#x}",
            f"{hash(memory.sycl_context) & 0xFFFFFFFF:08x}",
            f"{zlib.crc32(content):08x}",
        )
        for what, holds in {
            "pointer": memory._pointer == same_as._pointer,
            "kind": memory.get_usm_type() == same_as.get_usm_type(),
            "context": memory.sycl_context == same_as.sycl_context,
            "content": zlib.crc32(content) == zlib.crc32(wanted),
        }.items():
            if not holds:
                sys.exit(f"{name.strip()}: the {what} is not what it must be")


def seen(memory):
    """Return the content: a view of host-accessible memory, a copy of device memory."""
    on_device = memory.get_usm_type() == "device"
    return np.frombuffer(memory.tobytes() if on_device else memoryview(memory), dtype="u1")


def exchange(table, kind, digits):
    """Exchange memory of one kind from zeusm to dpctl and from dpctl to zeusm."""
    inverted = 16 - digits
    ours = getattr(zeusm.memory, f"MemoryUSM{kind}")(digits.nbytes)
    ours.copy_from_host(digits)
    view = seen(ours)
    table.step(f"zeusm: digits in {kind.lower()} memory", ours, ours, view, digits)

    theirs = dpctl.memory.as_usm_memory(ours)
    table.step("  handed to dpctl", theirs, ours, seen(theirs), digits)
    theirs.copy_from_host(inverted)
    if kind == "Device":
        view = seen(ours)
    table.step("  inverted by dpctl, seen by zeusm and NumPy", ours, theirs, view, inverted)

    theirs = getattr(dpctl.memory, f"MemoryUSM{kind}")(digits.nbytes)
    theirs.copy_from_host(inverted)
    ours = zeusm.memory.as_usm_memory(theirs)
    table.step("dpctl: handed to zeusm", ours, theirs, seen(ours), inverted)
    ours.copy_from_host(digits)
    table.step("  put back by zeusm, seen by dpctl", theirs, ours, seen(theirs), digits)


class Recognition:
    """Finds the nearest class mean of each image, in memory that zeusm allocated."""

    def __init__(self, images, classes):
        means = np.stack([images[classes == digit].mean(axis=0) for digit in range(10)])
        self.images = self.load(images)
        self.means = self.load(means)
        self.memory = zeusm.memory.MemoryUSMShared(8 * len(images))
        self.labels = self.array(self.memory, len(images), "i8")
        distances = ((images[:, None, :] - means[None, :, :]) ** 2).sum(axis=2)
        self.expected = distances.argmin(axis=1)
        self.right = (self.expected == classes).mean()

    def load(self, numbers):
        """Copy a NumPy array to zeusm's memory, and return it as an array for dpnp and numba-dpex."""
        memory = zeusm.memory.MemoryUSMShared(numbers.nbytes)
        memory.copy_from_host(numbers)
        return self.array(memory, numbers.shape, numbers.dtype)

    @staticmethod
    def array(memory, shape, dtype):
        array = usm_ndarray(shape, dtype=dtype, buffer=dpctl.memory.as_usm_memory(memory))
        # Arrays of one operation must have the same queue: dpctl's cached queue of the device.
        return dpnp.asarray(array.to_device(memory.sycl_device))

    def with_dpnp(self):
        differences = self.images[:, None, :] - self.means[None, :, :]
        self.labels[...] = dpnp.argmin(dpnp.sum(differences * differences, axis=2), axis=1)
        self.labels.sycl_queue.wait()

    def with_numba_dpex(self):
        import numba_dpex

        @numba_dpex.kernel
        def nearest_mean(item, images, means, labels):
            image = item.get_id(0)
            best = np.inf
            for digit in range(means.shape[0]):
                distance = 0.0
                for pixel in range(means.shape[1]):
                    difference = images[image, pixel] - means[digit, pixel]
                    distance += difference * difference
                if distance < best:
                    best = distance
                    labels[image] = digit

        numbers = numba_dpex.Range(len(self.expected))
        numba_dpex.call_kernel(nearest_mean, numbers, self.images, self.means, self.labels)

    def run(self, table, name, compute):
        self.memory.memset(255)
        compute()
        array = self.labels.get_array().usm_data
        table.step(f"{name}: labels", array, self.memory, memoryview(self.memory), self.expected)


def main():
    data = load_digits()
    runtime = zeusm.runtime()
    device = dpctl.SyclDevice("level_zero:gpu")
    print(f"{device.name}: runtime {runtime.kind}, {runtime.path}")
    print(f"because {runtime.reason}; dpctl {dpctl.__version__}, dpnp {dpnp.__version__}\n")
    table = Table()
    for kind in ("Host", "Shared", "Device"):
        exchange(table, kind, data.images.astype("u1").ravel())
    recognition = Recognition(data.data.astype("f4"), data.target)
    recognition.run(table, "dpnp", recognition.with_dpnp)
    if importlib.util.find_spec("numba_dpex"):
        recognition.run(table, "numba-dpex kernel", recognition.with_numba_dpex)
    count = len(data.target)
    print(f"\n{count} digits, {recognition.right:.1%} recognised by their nearest class mean.")


if __name__ == "__main__":
    main()
