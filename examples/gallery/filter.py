"""An image in zeusm's memory, which dpnp filters in place: the noisy image on the left, the filtered one on the right."""

import sys

import numpy as np
import zeusm  # before dpnp

# isort: split
import dpnp
import png

SIZE = 160
DISC, RING = 0.55, 0.8


def noisy_image():
    """A disc and a ring with salt-and-pepper noise."""
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    radius = np.hypot(x, y)
    image = np.where(radius < DISC, 0.9 - radius, np.where(radius < RING, 0.25, 0.6))
    noise = np.random.default_rng(1).random(image.shape)
    image[noise < 0.06], image[noise > 0.94] = 0, 1
    return image.astype("f4")


def median_filter(image):
    """Replace each pixel by the median of the nine around it, in place."""
    rows, columns = image.shape
    shifted = [image[y : rows - 2 + y, x : columns - 2 + x] for y in range(3) for x in range(3)]
    image[1:-1, 1:-1] = dpnp.median(dpnp.stack(shifted), axis=0)


def main(path):
    before = noisy_image()
    array = zeusm.asarray(before, usm_type="shared")
    image = dpnp.from_dlpack(array)  # the same bytes
    median_filter(image)
    after = array.copy_to_host()  # waits for dpnp
    png.write(path, png.coloured(np.hstack([before, after])))
    print(f"{np.abs(np.diff(before)).mean() / np.abs(np.diff(after)).mean():.1f} times smoother")


if __name__ == "__main__":
    main(*sys.argv[1:])
