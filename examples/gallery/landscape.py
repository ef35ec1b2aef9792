"""JAX and dpnp on one array: dpnp raises a landscape in zeusm's memory, and JAX lights the same bytes."""

import sys

import numpy as np
import zeusm  # before dpnp and JAX

# isort: split
import dpnp
import jax
import jax.numpy as jnp
import png

SIZE = 200
#: Where the hills are, how wide, and how high.
HILLS = [
    (-0.4, -0.3, 0.4, 1),
    (0.5, 0.2, 0.5, 0.8),
    (0.1, 0.7, 0.2, 0.5),
    (-0.6, 0.6, 0.25, 0.4),
    (0.7, -0.7, 0.2, 0.5),
]


def raise_landscape(height):
    """Hills, in place."""
    at = dpnp.linspace(-1, 1, SIZE, dtype="f4")
    x, y = dpnp.meshgrid(at, at)
    for x0, y0, width, top in HILLS:
        height += top * dpnp.exp(-((x - x0) ** 2 + (y - y0) ** 2) / width**2)
    height += dpnp.sin(9 * x + 4 * y) / 40


@jax.jit
def light(height):
    """The light of a sun in the upper left corner."""
    dy, dx = jnp.gradient(height * SIZE / 10)
    return jnp.clip((1 + dx + dy) / jnp.sqrt(3 * (1 + dx * dx + dy * dy)), 0, 1)


def main(path):
    array = zeusm.asarray(np.zeros((SIZE, SIZE), "f4"), usm_type="shared")
    raise_landscape(dpnp.from_dlpack(array))
    seen = jax.dlpack.from_dlpack(array)
    assert seen.unsafe_buffer_pointer() == array._pointer
    lit = np.asarray(light(seen))
    height = array.copy_to_host()
    height = (height - height.min()) / np.ptp(height)
    lit = np.round(lit * 30) / 30  # Fewer colours, which PNG stores in less.
    png.write(path, png.coloured(height) * (0.2 + 1.2 * lit[:, :, None]))
    print(f"one array of {array.nbytes} bytes, two packages, on {jax.devices()[0].device_kind}")


if __name__ == "__main__":
    main(*sys.argv[1:])
