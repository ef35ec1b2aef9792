"""Allocation histories: the file, what it says about each moment, and the pictures and formats it is turned into.

`file` reads and checks a file, `replay` turns its events into blocks with a beginning and an end, `moments` and `failures` ask
who held memory when. Above them stand the outputs, which do not use each other: `page`, `perfetto`, `pytorch`, `flamegraph`; and
`allocator`, which runs the events again.
"""
