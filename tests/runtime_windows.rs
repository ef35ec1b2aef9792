//! The selection of the runtime on Windows without a driver, and what an old driver lacks. A selection lasts for the process, so
//! each one is made in a child process.
#![cfg(windows)]
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;

use std::path::{Path, PathBuf};
use std::{env, fs};

use zeusm::runtime::{CPU_LIBRARY_VARIABLE, RUNTIME_VARIABLE, RuntimeKind};
use zeusm::{Context, Queue, Runtime, SharedMemory, sys};

/// Runs one ignored test of this file in a process of its own.
fn child(test: &str, runtime: &str, library: Option<&Path>) {
    let mut command = child::command(test);
    command.env_remove(CPU_LIBRARY_VARIABLE);
    command.env(RUNTIME_VARIABLE, runtime);
    command.envs(library.map(|library| ("ZEUSM_TEST_LIBRARY", library)));
    child::run(command);
}

/// The CPU runtime that cargo has built beside this test.
fn built() -> PathBuf {
    env::current_exe().unwrap().with_file_name("zeusm_cpu.dll")
}

/// Whether the machine has Intel's driver. These tests are for one without.
fn has_driver() -> bool {
    Path::new(r"C:\Windows\System32\ze_loader.dll").exists()
}

#[test]
fn without_a_driver_the_cpu_serves() {
    assert!(!has_driver());
    child("child_on_the_cpu", "auto", None);
    child("child_without_a_driver", "system", None);
}

#[test]
#[ignore = "runs in a child process"]
fn child_on_the_cpu() {
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::Cpu);
    assert_eq!(runtime.path(), built());
    assert!(
        runtime.reason().contains(r"system32\ze_loader.dll"),
        "{}",
        runtime.reason()
    );
    assert_eq!(runtime.warning(), None);
}

#[test]
#[ignore = "runs in a child process"]
fn child_without_a_driver() {
    let message = Runtime::get().unwrap_err().to_string();
    assert!(message.contains(r"system32\ze_loader.dll"), "{message}");
    assert!(
        message.contains("Intel's graphics driver installs"),
        "{message}"
    );
}

#[test]
fn a_library_is_found_by_a_long_path_with_spaces_and_umlauts() {
    let root = tempfile::tempdir().unwrap();
    let folder = root
        .path()
        .join("Grüße aus München")
        .join("x".repeat(200))
        .join("y".repeat(100));
    fs::create_dir_all(&folder).unwrap();
    let library = folder.join("ze_loader.dll");
    fs::copy(built(), &library).unwrap();
    assert!(library.as_os_str().len() > 300);
    let short = root.path().join("Grüße").join("ze_loader.dll");
    fs::create_dir(short.parent().unwrap()).unwrap();
    fs::copy(built(), &short).unwrap();
    for library in [short, library] {
        child("child_by_path", library.to_str().unwrap(), Some(&library));
        child("child_after_another", "auto", Some(&library));
    }
}

#[test]
fn a_loader_that_cannot_be_used_is_a_warning() {
    let root = tempfile::tempdir().unwrap();
    let library = root.path().join("ze_loader.dll");
    // A library without Level Zero, in the loader's place.
    fs::copy(r"C:\Windows\System32\version.dll", &library).unwrap();
    child("child_beside_it", "auto", Some(&library));
}

#[test]
#[ignore = "runs in a child process"]
fn child_beside_it() {
    // SAFETY: it is a library of Windows.
    unsafe { sys::load_from(given()) }.unwrap();
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::Cpu);
    let warning = runtime.warning().unwrap();
    assert!(warning.contains("import zeusm before dpctl"), "{warning}");
    assert!(warning.contains("has no function zeInit"), "{warning}");
}

fn given() -> PathBuf {
    env::var_os("ZEUSM_TEST_LIBRARY").unwrap().into()
}

/// Long paths begin with `\\?\`.
fn plain(path: PathBuf) -> PathBuf {
    let path = path.to_str().unwrap();
    path.strip_prefix(r"\\?\").unwrap_or(path).into()
}

#[test]
#[ignore = "runs in a child process"]
fn child_by_path() {
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::Custom);
    assert_eq!(plain(runtime.path()), given());
}

#[test]
#[ignore = "runs in a child process"]
fn child_after_another() {
    // As a SYCL runtime does, for instance from PATH.
    // SAFETY: it is the CPU runtime.
    unsafe { sys::load_from(given()) }.unwrap();
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::System);
    assert_eq!(runtime.reason(), "it was already loaded");
    assert_eq!(plain(runtime.path()), given());
    assert_eq!(runtime.other_library(), None);
}

/// The CPU runtime as an older driver: some functions have names that nobody asks for, with another last letter.
fn old(folder: &Path, lacking: &[&str]) -> PathBuf {
    let mut library = fs::read(built()).unwrap();
    for name in lacking {
        let text = [b"\0", name.as_bytes(), b"\0"].concat();
        let starts = |(place, byte): (usize, &u8)| {
            (*byte == 0 && library[place..].starts_with(&text)).then_some(place)
        };
        let places: Vec<usize> = library.iter().enumerate().filter_map(starts).collect();
        assert!(!places.is_empty(), "{name}");
        for place in places {
            library[place + name.len()] += 1;
        }
    }
    let path = folder.join("ze_loader.dll");
    fs::write(&path, library).unwrap();
    path
}

#[test]
fn a_driver_without_newer_functions_serves() {
    let root = tempfile::tempdir().unwrap();
    // Those that zeusm uses of later specifications than the first.
    let newer = [
        "zeCommandListHostSynchronize",
        "zeDeviceGetRootDevice",
        "zeDevicePciGetPropertiesExt",
        "zeDriverGetLastErrorDescription",
    ];
    let library = old(root.path(), &newer);
    child("child_copies", library.to_str().unwrap(), None);
}

#[test]
#[ignore = "runs in a child process"]
fn child_copies() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let mut memory = SharedMemory::new(&context, &device, 100_000).unwrap();
    queue.fill(&mut memory, 7).unwrap();
    let mut bytes = vec![0; 100_000];
    queue.read(&memory, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
}

#[test]
fn a_driver_without_a_function_that_is_needed_is_named() {
    let root = tempfile::tempdir().unwrap();
    let library = old(root.path(), &["zeMemAllocShared"]);
    let path = library.to_str().unwrap();
    child("child_of_an_old_driver", path, Some(&library));
}

#[test]
#[ignore = "runs in a child process"]
fn child_of_an_old_driver() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let error = SharedMemory::new(&context, &device, 64).unwrap_err();
    let expected = "has no function zeMemAllocShared: the library is too old";
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
    assert!(message.contains(given().to_str().unwrap()), "{message}");
}
