"""The tests of USM memory in dpctl's wheel, run on zeusm's classes."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import dpctl

# Tests that do not apply, with the reason.
CANNOT_APPLY = {
    "test_memory_create[": "requires sys.getsizeof() to count the device's bytes too",
    "test_cpython_api[": "requires an opaque pointer, which is a std::shared_ptr of dpctl's to the memory",
    "test_memory_copy_between_contexts": "partitions SYCL's CPU, and SYCL cannot partition Level Zero's",
}
if dpctl.__version__.startswith("0.17"):
    del CANNOT_APPLY["test_cpython_api["]
if dpctl.__version__.startswith("0.17"):
    CANNOT_APPLY["test_zero_copy"] = (
        "requires a reference_obj that is None in dpctl 0.22 and in zeusm"
    )


def test_dpctl_passes_its_own_tests_with_zeusm(fresh, tmp_path):
    suite = Path(dpctl.__file__).parent / "tests" / "test_sycl_usm.py"
    report = tmp_path / "report.xml"
    node = f"{suite.relative_to('/')}::"  # The test ID relative to pytest's root directory.
    deselect = [f"--deselect={node}{name}" for name in CANNOT_APPLY]
    options = ["-c", "/dev/null", "--rootdir=/", "-q", "-ra", "-p", "no:cacheprovider"]
    fresh.run(
        *["-m", "pytest", "-p", "zeusm_for_dpctl", *options, f"--junitxml={report}", *deselect],
        suite,
        env={"PYTHONPATH": str(Path(__file__).parent)},
    )
    cases = list(ElementTree.parse(report).iter("testcase"))
    passed = [case for case in cases if not len(case)]
    skipped = {case.get("name"): case.find("skipped").get("message") for case in cases if len(case)}
    print(f"dpctl {dpctl.__version__}: {len(passed)} passed, {len(skipped)} skipped: {skipped}")
    assert len(passed) >= 30
    # dpctl skips only tests of devices that this machine does not have.
    assert all("could not be created" in why or "failed" in why for why in skipped.values())
