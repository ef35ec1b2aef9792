"""Estimators of scikit-learn-intelex compute on zeusm's memory, as dpnp's arrays over it, and agree with scikit-learn."""

import numpy as np
import pytest
import zeusm

# isort: split
import dpnp
import dpnp.tensor as tensor
import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.linear_model
import sklearn.neighbors
import sklearnex.cluster
import sklearnex.decomposition
import sklearnex.ensemble
import sklearnex.linear_model
import sklearnex.neighbors
from sklearnex import config_context

pytestmark = pytest.mark.filterwarnings("default")

RANDOM = np.random.default_rng(5)
CENTRES = np.array([[0, 0, 0, 0, 0], [9, 9, 0, 0, 0], [0, 9, 9, 9, 0]])
X = np.concatenate([centre + RANDOM.standard_normal((60, 5)) for centre in CENTRES])
CLASSES = np.repeat([0.0, 1.0, 2.0], 60)
Y = X @ [1.0, 2.0, 3.0, 4.0, 5.0] + 0.1 * RANDOM.standard_normal(len(X))

# Each returns what both packages have to agree on, from an estimator of either one and its two arrays.
PROGRAMS = {
    "KNN": (
        lambda package, x, y: package.neighbors.KNeighborsClassifier(5).fit(x, y).predict(x),
        CLASSES,
    ),
    "DBSCAN": (lambda package, x, y: package.cluster.DBSCAN(eps=2.5).fit(x).labels_, CLASSES),
    "KMeans": (
        lambda package, x, y: np.sort(
            package.cluster.KMeans(3, n_init=5, random_state=0).fit(x).cluster_centers_, axis=0
        ),
        CLASSES,
    ),
    "PCA": (
        lambda package, x, y: package.decomposition.PCA(3).fit(x).explained_variance_ratio_,
        CLASSES,
    ),
    "LinearRegression": (
        lambda package, x, y: package.linear_model.LinearRegression().fit(x, y).coef_,
        Y,
    ),
    "RandomForest": (
        lambda package, x, y: (
            package.ensemble.RandomForestClassifier(20, random_state=0).fit(x, y).predict(x)
        ),
        CLASSES,
    ),
}
# The others need oneMKL's Cholesky factorisation, which is refused, or kernels of oneDAL that need a GPU.
ON_GPU = ["KNN", "DBSCAN", "KMeans"]
CASES = [("level_zero:cpu:0", name) for name in PROGRAMS] + [
    ("level_zero:gpu:0", name) for name in ON_GPU
]


def strictly():
    """Refuse the silent replacement of the device by the host, or of oneDAL by scikit-learn."""
    return config_context(allow_fallback_to_host=False, allow_sklearn_after_onedal=False)


def in_place(array):
    """dpnp's array over the same memory, on the same queue: the call of docs/exchange.md."""
    peer = dpnp.asarray(tensor.asarray(array))
    assert peer.__sycl_usm_array_interface__["data"][0] == array._pointer
    assert peer.sycl_device == array.sycl_device
    return peer


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
@pytest.mark.parametrize(("device", "name"), CASES)
def test_the_answer_is_scikit_learns(device, name, usm_type):
    program, target = PROGRAMS[name]
    x, y = (in_place(zeusm.asarray(host, device=device, usm_type=usm_type)) for host in (X, target))
    with strictly():
        answer = program(sklearnex, x, y)
    if hasattr(answer, "__sycl_usm_array_interface__"):
        answer = dpnp.asnumpy(answer)
    np.testing.assert_allclose(answer, program(sklearn, X, target), rtol=1e-6, atol=1e-6)


def test_the_second_fit_on_a_gpu_is_wrong():
    """A row of docs/limits.md: oneDAL adds the variances to memory that it does not initialise."""
    x = in_place(zeusm.asarray(X, device="level_zero:gpu:0"))
    with strictly():
        fits = [
            sklearnex.decomposition.PCA(3, svd_solver="covariance_eigh").fit(x) for _ in range(2)
        ]
    first, second = (dpnp.asnumpy(fit.explained_variance_ratio_) for fit in fits)
    assert not np.allclose(first, second), "the row of oneDAL in docs/limits.md is obsolete"


@pytest.mark.parametrize("usm_type", ["shared", "host"])
def test_numpys_view_is_computed_on_the_host(usm_type):
    x = np.asarray(zeusm.asarray(X, usm_type=usm_type))
    answer = sklearnex.decomposition.PCA(3).fit(x).explained_variance_ratio_
    expected = sklearn.decomposition.PCA(3).fit(X).explained_variance_ratio_
    np.testing.assert_allclose(answer, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_our_arrays_are_refused(name):
    """scikit-learn-intelex wants a queue object of dpctl in the interface, and functions of dpnp in the array's namespace."""
    program, target = PROGRAMS[name]
    x, y = (zeusm.asarray(host, device="level_zero:cpu:0") for host in (X, target))
    with strictly(), pytest.raises(ValueError, match="Invalid queue or device selector"):
        program(sklearnex, x, y)
