"""Open3D's tensors, neighbours, hash sets and point clouds on the CPU runtime: each result is that of Open3D's own CPU device.

`voxel_down_sample` is not here: Intel's compiler takes minutes for its kernels (docs/limits.md)."""

import numpy as np
import open3d
import pytest
from open3d import core

SYCL, CPU = core.Device("SYCL:0"), core.Device("CPU:0")
RANDOM = np.random.default_rng(1)
POINTS = RANDOM.random((1000, 3), dtype="f4")
MATRIX = RANDOM.random((48, 48), dtype="f4") + 48 * np.eye(48, dtype="f4")
INTEGERS = RANDOM.integers(-50, 50, (40, 30), dtype="i4")
IMAGE = RANDOM.integers(0, 256, (22, 45, 3), dtype="u1")
DEPTH = RANDOM.integers(500, 3000, (20, 50, 1), dtype="u2")
TURN = np.array([[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], "f4")


def test_the_device_is_that_of_zeusm():
    assert core.sycl.get_available_devices() == [SYCL]
    assert core.sycl.get_device_properties(SYCL).name.startswith("zeusm CPU runtime")


def compare(function, *arrays, tolerance=1e-5):
    """Compares what a function makes of tensors on both devices."""
    results = [function(*(core.Tensor(x, device=device) for x in arrays)) for device in (SYCL, CPU)]
    assert results[0].device == SYCL
    found, right = (tensor.cpu().numpy() for tensor in results)
    assert found.dtype == right.dtype
    assert found.shape == right.shape
    np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


UNARY = ["abs", "ceil", "cos", "exp", "floor", "neg", "round", "sin", "sqrt", "trunc"]


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    compare(lambda x: getattr(x * 3, name)(), POINTS)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "lt", "ge", "eq", "ne"])
def test_binary(name):
    compare(lambda x, y: getattr(x, name)(y), POINTS, POINTS[::-1].copy())
    compare(lambda x, y: getattr(x, name)(y), INTEGERS, INTEGERS[:1] * 2 + 1)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "min", "max", "argmin", "argmax"])
def test_reductions(name, axes):
    if name.startswith("arg"):
        axes = axes[:1]
    compare(lambda x: getattr(x, name)(axes), POINTS[:40] + 0.5, tolerance=1e-4)


MOVES = {
    "cast": lambda x: (x * 100).to(core.int32),
    "narrow": lambda x: (x * 100).to(core.uint8),
    "transposed": lambda x: x.T().contiguous(),
    "slice": lambda x: x[10:500:7, 1:].clone(),
    "indices": lambda x: x[core.Tensor([5, 3, 3, 900], device=x.device)],
    "mask": lambda x: x[x[:, 0] > 0.5],
    "append": lambda x: x.append(x * 2, 0),
    "fill": lambda x: core.Tensor.full((17, 5), 2.5, core.float64, x.device),
    "arange": lambda x: core.Tensor.arange(3, 5000, 7, core.int64, device=x.device),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    compare(MOVES[name], POINTS)


def test_writes_by_slices_and_indices():
    def write(x):
        x = x.clone()
        x[2:9] = 7
        x[core.Tensor([100, 300], device=x.device)] = x[:2] * 2
        return x

    compare(write, POINTS)


LINALG = {
    "matmul": lambda m: m.matmul(m),
    "transposed": lambda m: m.T().matmul(m[:, :7].contiguous()),
    "solve": lambda m: m.solve(m[:, :2].contiguous()),
    "inv": lambda m: m.inv(),
    "lu": lambda m: m.lu()[1],
    "svd": lambda m: m.svd()[1],
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name):
    compare(LINALG[name], MATRIX, tolerance=1e-3)


@pytest.mark.parametrize("what", ["indices", "distances"])
def test_nearest_neighbours(what):
    def search(points, queries):
        neighbours = core.nns.NearestNeighborSearch(points)
        assert neighbours.knn_index()
        return neighbours.knn_search(queries, 5)[what == "distances"]

    compare(search, POINTS, RANDOM.random((70, 3), dtype="f4"), tolerance=1e-4)


def test_hash_sets():
    keys = RANDOM.integers(0, 60, (300, 1))
    found = []
    for device in (SYCL, CPU):
        taken = core.HashSet(16, core.int64, (1,), device)
        _buffers, inserted = taken.insert(core.Tensor(keys, device=device))
        active = taken.active_buf_indices().to(core.int64)
        present = taken.find(core.Tensor(np.arange(100).reshape(-1, 1), device=device))[1]
        found.append(present.cpu().numpy())
        assert sorted(taken.key_tensor()[active].cpu().numpy().ravel()) == sorted({*keys.ravel()})
        assert inserted.cpu().numpy().sum() == taken.size() == len({*keys.ravel()})
    assert np.array_equal(*found)


def cloud(positions):
    return open3d.t.geometry.PointCloud(positions)


POINT_CLOUDS = {
    "transform": lambda x: cloud(x).transform(core.Tensor(TURN, device=x.device)).point.positions,
    "translate": lambda x: cloud(x).translate([1, 2, 3]).point.positions,
    "scale": lambda x: cloud(x).scale(2, [0, 0, 1]).point.positions,
    "greatest": lambda x: cloud(x).get_max_bound(),
    "center": lambda x: cloud(x).get_center(),
    "selected": lambda x: cloud(x).select_by_mask(x[:, 1] > 0.3).point.positions,
}


@pytest.mark.parametrize("name", POINT_CLOUDS)
def test_point_clouds(name):
    compare(POINT_CLOUDS[name], POINTS)


def test_a_cloud_of_a_depth_image():
    camera = core.Tensor(np.array([[50, 0, 25], [0, 50, 10], [0, 0, 1.0]]))

    def unproject(depth):
        image = open3d.t.geometry.Image(depth)
        made = open3d.t.geometry.PointCloud.create_from_depth_image(image, camera).point.positions
        # Points come in the order in which work-items have written them.
        order = np.lexsort(made.cpu().numpy().round(4).T)
        return made[core.Tensor(order, device=made.device)]

    compare(unproject, DEPTH, tolerance=1e-4)


def test_grey_images():
    compare(
        lambda x: open3d.t.geometry.Image(x).rgb_to_gray().as_tensor().to(core.float32) / 255,
        IMAGE,
        tolerance=1.01 / 255,  # The CPU device rounds differently.
    )
