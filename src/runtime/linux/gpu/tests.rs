#![allow(clippy::unwrap_used)]

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use zeusm_process::testing::in_child;

/// A machine with one render node of `vendor`.
fn machine(vendor: &str, node: bool, drivers: &[&str]) -> (TempDir, Machine) {
    let root = tempfile::tempdir().unwrap();
    let machine = Machine {
        sysfs: root.path().join("sys"),
        nodes: root.path().join("dev"),
        drivers: drivers.iter().map(PathBuf::from).collect(),
        probe_cache: Some(root.path().join("probe-cache")),
    };
    let entry = machine.sysfs.join("class/drm/renderD128/device");
    fs::create_dir_all(&entry).unwrap();
    fs::write(entry.join("vendor"), format!("{vendor}\n")).unwrap();
    fs::create_dir_all(machine.nodes.join("dri")).unwrap();
    if node {
        fs::write(machine.nodes.join("dri/renderD128"), "").unwrap();
    }
    (root, machine)
}

#[test]
fn a_machine_without_an_intel_gpu_has_none() {
    let none = Finding::None("no Intel GPU was found".to_owned());
    assert_eq!(machine("0x10de", true, &[]).1.find(), none);
    let empty = Machine {
        sysfs: PathBuf::from("/nowhere"),
        nodes: PathBuf::from("/nowhere"),
        drivers: Vec::new(),
        probe_cache: None,
    };
    assert_eq!(empty.find(), none);
}

/// Why a node with this error cannot be opened.
fn not_opened(node: &Path, error: io::Error) -> String {
    let (path, opened) = (node.to_owned(), Err(error));
    GpuNode { path, opened }.refusal().unwrap()
}

/// The reason why the machine's GPU cannot be used.
fn why(machine: &Machine) -> String {
    match machine.find() {
        Finding::Unusable(why) => why,
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_missing_node_has_advice_for_containers() {
    let (_root, machine) = machine(VENDOR_INTEL, false, &[]);
    let why = why(&machine);
    assert!(why.contains("renderD128 does not exist"), "{why}");
    assert!(
        why.contains("--device /dev/dri") && !why.contains("group"),
        "{why}"
    );
}

#[test]
fn a_node_that_cannot_be_opened_is_named_with_advice() {
    let node = Path::new("/dev/dri/renderD128");
    for (errno, part) in [
        (libc::EACCES, "usually render"),
        (libc::EPERM, "container"),
        (libc::EIO, "Input/output error"),
    ] {
        let why = not_opened(node, io::Error::from_raw_os_error(errno));
        assert!(why.contains("renderD128") && why.contains(part), "{why}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn a_closed_folder_is_not_the_fault_of_the_nodes_group() {
    let root = tempfile::tempdir().unwrap();
    let (folder, node) = (root.path().join("dri"), root.path().join("dri/renderD128"));
    fs::create_dir(&folder).unwrap();
    fs::write(&node, "").unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    in_child(|| {
        // SAFETY: another user than root, for whom permissions count; only this child becomes that user.
        unsafe { libc::seteuid(65534) };
        let error = File::open(&node).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
        let why = not_opened(&node, error);
        assert!(why.contains("search permission"), "{why}");
    });
}

#[test]
fn a_missing_driver_is_named() {
    let (_root, machine) = machine(VENDOR_INTEL, true, &["/nowhere/libze_intel_gpu.so.1"]);
    let why = why(&machine);
    assert!(why.contains("not installed"), "{why}");
    assert!(why.contains("/nowhere/libze_intel_gpu.so.1"), "{why}");
}

/// Compiles C source to a shared library that is linked to `needed`.
fn library(root: &TempDir, name: &str, source: &str, needed: &[&Path]) -> PathBuf {
    let (file, code) = (root.path().join(name), root.path().join("source.c"));
    fs::write(&code, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
        .arg(&file)
        .arg(&code)
        .args(needed)
        .status();
    assert!(compiled.unwrap().success());
    file
}

#[test]
fn a_driver_with_a_missing_dependency_is_not_reported_as_missing() {
    let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
    let needed = library(&root, "libneeded.so.1", "", &[]);
    machine.drivers = vec![library(&root, "driver.so", "", &[&needed])];
    fs::remove_file(&needed).unwrap();
    let why = why(&machine);
    assert!(why.contains("cannot be loaded"), "{why}");
    assert!(
        why.contains("libneeded.so.1: cannot open shared object file"),
        "{why}"
    );
}

/// A driver whose zeInit appends to a file and then executes `then`; its path and that of the file.
fn driver(root: &TempDir, then: &str) -> (PathBuf, PathBuf) {
    let log = root.path().join("log");
    let source = format!(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <signal.h>\n\
         int zeInit(int flags) {{\n\
         FILE *file = fopen(\"{}\", \"a\"); fputs(\"x\", file); fclose(file);\n\
         fputs(\"Abort was called at 42\", stderr); {then} }}\n\
         int zeDriverGet(int *count, void *drivers) {{ *count = 0; return 0; }}\n\
         int zeDeviceGet(void *driver, int *count, void *devices) {{ return 0; }}\n",
        log.display()
    );
    (library(root, "driver.so", &source, &[]), log)
}

#[test]
fn a_driver_that_aborts_is_reported_and_probed_once() {
    let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
    let (driver, log) = driver(&root, "abort();");
    machine.drivers = vec![driver.clone()];
    let first = why(&machine);
    for part in ["does not start", "signal 6", "Abort was called at 42"] {
        assert!(first.contains(part), "{part:?} in {first}");
    }
    assert!(first.contains(&driver.display().to_string()), "{first}");
    let cache = machine.probe_cache.clone().unwrap();
    let second = why(&machine);
    assert!(second.starts_with(&first), "{second}");
    assert!(second.contains(&cache.display().to_string()), "{second}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "x");
    fs::remove_file(cache).unwrap();
    assert_eq!(why(&machine), first);
    assert_eq!(fs::read_to_string(&log).unwrap(), "xx");
}

#[test]
fn a_driver_that_crashes_is_reported() {
    let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
    machine.drivers = vec![driver(&root, "raise(SIGSEGV); return 0;").0];
    let why = why(&machine);
    assert!(why.contains("signal 11"), "{why}");
}

#[test]
fn a_driver_without_devices_is_not_cached() {
    let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
    let (driver, log) = driver(&root, "return 0;");
    machine.drivers = vec![driver];
    for times in ["x", "xx"] {
        let why = why(&machine);
        assert!(why.contains("reports no GPU"), "{why}");
        assert!(why.contains("Abort was called at 42"), "{why}");
        assert_eq!(fs::read_to_string(&log).unwrap(), times);
    }
}

#[test]
fn wsls_node_may_be_of_another_vendors_gpu() {
    let (_root, machine) = machine("0x1414", true, &["/nowhere/libze_intel_gpu.so.1"]);
    let node = machine.nodes.join("dxg");
    let none = |machine: &Machine| match machine.find() {
        Finding::None(why) => why,
        found => panic!("{found:?}"),
    };
    fs::write(&node, "").unwrap();
    let why = none(&machine);
    assert!(
        why.contains("WSL") && why.contains("libze-intel-gpu1"),
        "{why}"
    );
    fs::remove_file(&node).unwrap();
    fs::create_dir(&node).unwrap(); // It exists and cannot be opened, by whoever.
    let why = none(&machine);
    assert!(why.contains("WSL") && why.contains("wsl --update"), "{why}");
}

#[test]
fn a_driver_with_a_device_is_usable() {
    let (_root, mut machine) = machine(VENDOR_INTEL, true, &[]);
    machine.drivers = crate::runtime::cpu::candidates();
    let node = machine.nodes.join("dri/renderD128");
    assert_eq!(machine.find(), Finding::Usable(node));
}

#[test]
fn a_driver_that_does_not_export_the_api_is_assumed_to_be_usable() {
    let (_root, machine) = machine(VENDOR_INTEL, true, &["libc.so.6"]);
    assert!(matches!(machine.find(), Finding::Usable(_)));
}
