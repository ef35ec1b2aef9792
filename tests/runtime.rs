//! The selection of the runtime. A selection lasts for the process, so each one is made in a child process.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;

use std::env;
use std::fs;
use std::process::Command;
use std::ptr;

use zeusm::runtime::{RUNTIME_VARIABLE, RuntimeKind};
use zeusm::{Error, Runtime};

/// Runs one ignored test of this file in a process of its own, with these environment variables.
fn child(test: &str, variables: &[(&str, &str)]) {
    let mut command = child::command(test);
    for name in ["ZEUSM_RUNTIME", "ZEUSM_CPU_LIBRARY"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    child::run(command);
}

/// A library with two drivers of one device each; the second device has a sub-device.
const TWO_DRIVERS: &str = r#"
#include <level_zero/ze_api.h>

static char drivers[2], devices[2], part;

ze_result_t zeInit(ze_init_flags_t flags) { return ZE_RESULT_SUCCESS; }

static ze_result_t list(uint32_t *count, void **handles, uint32_t known, char *first)
{
    for (uint32_t i = 0; handles && i < known && i < *count; i++)
        handles[i] = first + i;
    *count = known;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *handles)
{
    return list(count, (void **)handles, 2, drivers);
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *handles)
{
    return list(count, (void **)handles, 1, devices + ((char *)driver - drivers));
}

ze_result_t zeDeviceGetSubDevices(ze_device_handle_t device, uint32_t *count, ze_device_handle_t *handles)
{
    return list(count, (void **)handles, (char *)device == devices + 1, &part);
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *properties)
{
    properties->type = ZE_DEVICE_TYPE_GPU;
    return ZE_RESULT_SUCCESS;
}
"#;

#[test]
fn a_handle_belongs_to_the_driver_that_lists_it() {
    let root = tempfile::tempdir().unwrap();
    let (code, library) = (root.path().join("two.c"), root.path().join("libtwo.so"));
    fs::write(&code, TWO_DRIVERS).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &code])
        .status();
    assert!(compiled.unwrap().success());
    let path = library.to_str().unwrap();
    child("child_two_drivers", &[("ZEUSM_RUNTIME", path)]);
}

#[test]
#[ignore = "run by a_handle_belongs_to_the_driver_that_lists_it"]
fn child_two_drivers() {
    let runtime = Runtime::get().unwrap();
    let [first, second] = runtime.drivers() else {
        panic!("{:?}", runtime.drivers());
    };
    let device = |driver: &zeusm::Driver| driver.devices().unwrap()[0].handle();
    let mut part = ptr::null_mut();
    // SAFETY: the device is the driver's, and there is room for one handle.
    let answer = unsafe {
        runtime.library().zeDeviceGetSubDevices.unwrap()(device(second), &mut 1, &mut part)
    };
    assert_eq!(answer, zeusm::sys::ZE_RESULT_SUCCESS);
    for (handle, driver) in [
        (device(first), first),
        (device(second), second),
        (part, second),
    ] {
        let found = runtime.driver_of(handle).unwrap();
        assert_eq!(found.handle(), driver.handle());
    }
    let error = runtime
        .driver_of(ptr::without_provenance_mut(0x1000))
        .unwrap_err();
    assert!(matches!(error, Error::OtherRuntime { .. }));
    let message = error.to_string();
    assert!(
        message.contains("libtwo.so") && message.contains("ZEUSM_RUNTIME"),
        "{message}"
    );
}

#[test]
fn the_runtime_describes_itself() {
    let runtime = Runtime::get().unwrap();
    assert!(std::ptr::eq(runtime, Runtime::get().unwrap()));
    assert!(!runtime.reason().is_empty());
    assert!(runtime.path().is_absolute(), "{}", runtime.path().display());
    // The runtime is the one that the environment chooses.
    let behind_the_loader = matches!(
        env::var("ZEUSM_TEST_MODE").as_deref(),
        Ok("loader" | "validated")
    );
    let file = runtime.path().display().to_string();
    assert_eq!(
        file.contains("libze_loader.so"),
        behind_the_loader,
        "{file}"
    );
    assert!(runtime.default_device().unwrap().is_gpu());
    for device in runtime.devices() {
        assert!(device.largest_allocation() > 0);
        assert!(!device.name().is_empty());
    }
}

#[test]
fn the_cpu_runtimes_device_name_says_cpu() {
    child("child_cpu", &[("ZEUSM_RUNTIME", "cpu")]);
}

/// Chooses a runtime.
fn choose(choice: &str) -> zeusm::Result<&'static Runtime> {
    // SAFETY: the child process has no other thread that reads the environment.
    unsafe { env::set_var(RUNTIME_VARIABLE, choice) };
    Runtime::get()
}

#[test]
#[ignore = "run by the_cpu_runtimes_device_name_says_cpu"]
fn child_cpu() {
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::Cpu);
    let name = runtime.default_device().unwrap().name().to_owned();
    assert!(name.contains("CPU"), "{name}");
    // Another choice has no effect any more.
    assert!(ptr::eq(choose("system").unwrap(), runtime));
}

#[test]
fn a_missing_library_is_an_error_with_its_path() {
    child(
        "child_missing",
        &[("ZEUSM_CPU_LIBRARY", "/nowhere/libze_loader.so.1")],
    );
}

#[test]
#[ignore = "run by a_missing_library_is_an_error_with_its_path"]
fn child_missing() {
    let error = choose("cpu").unwrap_err();
    assert!(matches!(error, Error::ChoiceFailed { .. }));
    assert!(
        error.to_string().contains("/nowhere/libze_loader.so.1"),
        "{error}"
    );
    let error = choose("/nowhere/else.so").unwrap_err();
    assert!(error.to_string().contains("ZEUSM_RUNTIME"), "{error}");
    assert!(error.to_string().contains("/nowhere/else.so"), "{error}");
    // A library without the Level Zero API.
    let libc = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = libc
        .split_whitespace()
        .find(|it| it.ends_with("/libc.so.6"));
    let error = choose(libc.unwrap()).unwrap_err();
    assert!(error.to_string().contains("zeInit"), "{error}");
}

#[test]
fn an_invalid_choice_is_an_error() {
    child("child_nonsense", &[("ZEUSM_RUNTIME", "the fast one")]);
}

#[test]
#[ignore = "run by an_invalid_choice_is_an_error"]
fn child_nonsense() {
    let error = Runtime::get().unwrap_err();
    assert!(matches!(error, Error::InvalidVariable { .. }));
    assert!(error.to_string().contains("the fast one"), "{error}");
    // No runtime is in use yet, so another choice is possible.
    assert_eq!(choose("cpu").unwrap().kind(), RuntimeKind::Cpu);
}
