"""Writes pictures, without a library of images."""

import struct
import zlib

import numpy as np


def write(path, pixels):
    """Write an array of rows of red, green and blue, from 0 to 255, as PNG."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), "u1")  # Each row begins with its filter: none.
    rows[:, 1:] = np.clip(pixels, 0, 255).astype("u1").reshape(height, 3 * width)

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        file.write(chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


#: Black, blue, green, yellow: the darkest to the brightest, also for those who see no colours.
STOPS = np.array([(8, 8, 32), (40, 60, 130), (30, 140, 140), (120, 205, 90), (250, 230, 40)], "f4")


def coloured(values):
    """Colours for values from 0 to 1, in steps, which PNG stores in less."""
    at = np.round(np.clip(values, 0, 1) * 60) / 60 * (len(STOPS) - 1)
    return np.stack(
        [np.interp(at, range(len(STOPS)), STOPS[:, part]) for part in range(3)], axis=-1
    )
