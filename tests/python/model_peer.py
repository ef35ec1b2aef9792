"""The peer process of test_model.py, which exports its memory and opens handles."""

import multiprocessing

import zeusm.memory as zm

CLASSES = {"device": zm.MemoryUSMDevice, "shared": zm.MemoryUSMShared, "host": zm.MemoryUSMHost}


def serve(pipe):
    """Serves requests one after another: the name of a method and its arguments."""
    side = Side()
    while True:
        name, arguments = pipe.recv()
        pipe.send(getattr(side, name)(*arguments))


class Side:
    """The methods of the peer process."""

    def __init__(self):
        self.memories = []

    def allocate(self, kind, size, val):
        """Allocates memory; returns its number and its handle."""
        memory = CLASSES[kind](size)
        memory.memset(val)
        self.memories.append((memory, memory.ipc_handle()))
        return len(self.memories) - 1, bytes(self.memories[-1][1])

    def read(self, number, val):
        """Reads its own memory, and may fill it after that."""
        return changed(self.memories[number][0], val)

    def use(self, handle, val):
        """Reads the memory of a handle, and may fill it after that."""
        with zm.IPCMemoryHandle.open(handle) as memory:
            return changed(memory, val)


def changed(memory, val):
    content = memory.tobytes()
    if val is not None:
        memory.memset(val)
    return content


class Peer:
    """The model's proxy of the peer process, which exits with the interpreter."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def __getattr__(self, name):
        return lambda *arguments: self.ask(name, arguments)

    def ask(self, name, arguments):
        self.pipe.send((name, arguments))
        assert self.pipe.poll(60), f"{name} took the peer process more than a minute"
        return self.pipe.recv()
