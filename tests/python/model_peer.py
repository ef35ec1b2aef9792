"""The other process of test_model.py: it has memory, and opens handles."""

import multiprocessing

import zeusm.memory as zm

CLASSES = {"device": zm.MemoryUSMDevice, "shared": zm.MemoryUSMShared, "host": zm.MemoryUSMHost}


def serve(pipe):
    """Answers one request after the other: a method's name and its arguments."""
    side = Side()
    while True:
        name, arguments = pipe.recv()
        pipe.send(getattr(side, name)(*arguments))


class Side:
    """What the other process does."""

    def __init__(self):
        self.memories = []

    def allocate(self, kind, size, val):
        """Makes memory, and answers its number and handle."""
        memory = CLASSES[kind](size)
        memory.memset(val)
        self.memories.append((memory, memory.ipc_handle()))
        return len(self.memories) - 1, bytes(self.memories[-1][1])

    def read(self, number, val):
        """Answers what its own memory has, and then may fill it."""
        return changed(self.memories[number][0], val)

    def use(self, handle, val):
        """The same for memory by its handle."""
        with zm.IPCMemoryHandle.open(handle) as memory:
            return changed(memory, val)


def changed(memory, val):
    content = memory.tobytes()
    if val is not None:
        memory.memset(val)
    return content


class Peer:
    """That process as the model sees it, which ends with the interpreter."""

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
        assert self.pipe.poll(60), f"{name} takes the other process more than a minute"
        return self.pipe.recv()
