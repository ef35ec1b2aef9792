"""What the programs of these tests measure of their own process. They begin with this source."""

import gc


def resident():
    """The bytes of the process in memory, but for pages of files: the kernel drops those when it likes."""
    gc.collect()
    with open("/proc/self/status") as status:
        figures = [line.split() for line in status if line.startswith(("RssAnon", "RssShmem"))]
    return sum(int(kibibytes) << 10 for _, kibibytes, _ in figures)
