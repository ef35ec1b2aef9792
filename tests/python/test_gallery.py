"""The programs of the gallery that need no peer: each makes the picture that docs/gallery.md shows."""

import re
import xml.etree.ElementTree
import zlib

import numpy as np
import pytest
from conftest import ROOT

pytestmark = pytest.mark.once

PROGRAMS = ROOT / "examples" / "gallery"
PICTURES = ROOT / "docs" / "_static" / "gallery"
PAGE = (ROOT / "docs" / "gallery.md").read_text()


def pixels(path):
    """The rows of a picture that `png.py` wrote."""
    data = path.read_bytes()
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    packed = re.search(rb"IDAT(.*)....\0\0\0\0IEND", data, re.DOTALL)[1]
    rows = np.frombuffer(zlib.decompress(packed), "u1").reshape(height, 1 + 3 * width)
    return rows[:, 1:].astype("i4")


@pytest.mark.parametrize("name", ["filter", "frame_buffer"])
def test_the_picture_is_the_programs(fresh, tmp_path, name):
    if name == "filter":
        pytest.importorskip("dpnp")
    path = tmp_path / "picture.png"
    assert fresh.run("-W", "error", PROGRAMS / f"{name}.py", path).stdout
    found, shown = pixels(path), pixels(PICTURES / f"{name}.png")
    assert found.shape == shown.shape
    assert len(np.unique(found)) > 20
    # Processors round differently, which may be another step of a colour.
    assert (abs(found - shown) > 16).mean() < 0.001


def test_the_flame_graph_is_the_programs(fresh, tmp_path):
    path = tmp_path / "picture.svg"
    fresh.run("-W", "error", PROGRAMS / "training.py", path)

    def texts(file):
        return [each.text for each in xml.etree.ElementTree.parse(file).iter() if each.text]

    assert texts(path) == texts(PICTURES / "training.svg")
    assert any("activations" in text for text in texts(path))


def test_the_page_has_each_program_and_picture():
    programs = {path.name for path in PROGRAMS.glob("*.py")} - {"png.py"}
    assert set(re.findall(r"examples/gallery/(\w+\.py)\n", PAGE)) == programs
    pictures = {path.name for path in PICTURES.iterdir()}
    assert set(re.findall(r"_static/gallery/([\w.]+)", PAGE)) == pictures
    assert {name.split(".")[0] for name in programs} == {name.split(".")[0] for name in pictures}
    assert all(path.stat().st_size < 60_000 for path in PICTURES.iterdir())
