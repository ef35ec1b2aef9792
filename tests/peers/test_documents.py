"""The snippets of the documents and the examples that need Dask or Ray run in new interpreters; `test_mpi.py` has MPI's."""

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
from documents import examples, snippets

# Ray starts for ten seconds, and `test_ray.py` and `test_ray_direct.py` do the same as its snippets.
SNIPPETS = [
    pytest.param(code, id=name, marks=pytest.mark.daily if "import ray" in code else [])
    for code, name in snippets(of_peers=True)
    if "mpi4py" not in code
]
ZEUSM_RUN = [sys.executable, "-m", "zeusm", "run", sys.executable, "-W", "error"]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet(run, code):
    """Ray's workers need `zeusm run`, as the page says."""
    python = ZEUSM_RUN if "import ray" in code else ZEUSM_RUN[4:]
    run(*python, "-c", code)


EXAMPLES = [
    pytest.param(path, id=path.name, marks=pytest.mark.daily if "kmeans" in path.name else [])
    for path in examples(of_peers=True)
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_example(run, path):
    assert run(*ZEUSM_RUN[4:], path).stdout
