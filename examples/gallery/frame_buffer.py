"""Two processes share a frame buffer: each draws every other band of the Mandelbrot set into the same memory, by an IPC handle."""

import multiprocessing
import sys

import numpy as np
import png
import zeusm.memory as zm

HEIGHT, WIDTH, BAND = 240, 320, 30


def draw(memory, turn):
    """Draw every other band: how many steps each point takes to leave the circle of radius 2, with a shade of the process."""
    frame = np.frombuffer(memory, "f4").reshape(HEIGHT, WIDTH)
    for top in range(turn * BAND, HEIGHT, 2 * BAND):
        y, x = np.mgrid[top : top + BAND, :WIDTH]
        point = (x / WIDTH * 3 - 2.2) + 1j * (y / HEIGHT * 2.4 - 1.2)
        value, steps = np.zeros_like(point), np.zeros(point.shape, "f4")
        for _ in range(40):
            inside = abs(value) < 2
            value[inside] = value[inside] ** 2 + point[inside]
            steps += inside
        frame[top : top + BAND] = steps / 40 - 0.12 * turn


def other_process(handle):
    with zm.IPCMemoryHandle.open(handle) as memory:
        draw(memory, 1)


def main(path):
    memory = zm.MemoryUSMHost(4 * HEIGHT * WIDTH)
    other = multiprocessing.get_context("spawn").Process(
        target=other_process, args=(memory.ipc_handle().to_bytes(),)
    )
    other.start()
    draw(memory, 0)
    other.join()
    frame = np.frombuffer(memory, "f4").reshape(HEIGHT, WIDTH)
    png.write(path, png.coloured(frame))
    print(f"{HEIGHT // BAND} bands by two processes, exit status {other.exitcode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
