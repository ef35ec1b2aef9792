//! What system management and the PCI bus tell of devices, which a library in C simulates.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;
#[path = "support/compile.rs"]
mod compile;

use compile::compile;
use zeusm::{Device, Runtime, sys};

/// Runs a test on the library, with these variables.
fn simulated(test: &str, variables: &[(&str, &str)]) {
    let root = tempfile::tempdir().unwrap();
    compile(root.path(), "libmanaged.so", "managed.c", &[]);
    let mut command = child::command(test);
    command.env("ZEUSM_RUNTIME", root.path().join("libmanaged.so"));
    command.envs(variables.iter().copied());
    child::run(command);
}

/// The integrated GPU, the card, and its two tiles.
fn devices() -> [Device; 4] {
    let driver = &Runtime::get().unwrap().drivers()[0];
    let [integrated, card] = driver.devices().unwrap() else {
        panic!("it has two devices");
    };
    let mut tiles = [std::ptr::null_mut(); 2];
    // SAFETY: the card is alive, and there is room for both.
    let listed = unsafe {
        driver.library().zeDeviceGetSubDevices.unwrap()(card.handle(), &mut 2, tiles.as_mut_ptr())
    };
    assert_eq!(listed, sys::ZE_RESULT_SUCCESS);
    // SAFETY: the driver has listed them.
    let [first, second] = tiles.map(|tile| unsafe { driver.device(tile) }.unwrap());
    [integrated.clone(), card.clone(), first, second]
}

fn message(device: &Device) -> String {
    device.memory_state().unwrap_err().to_string()
}

#[test]
fn memory_is_that_of_the_device_or_its_part() {
    simulated("of_each", &[]);
}

#[test]
#[ignore = "run by memory_is_that_of_the_device_or_its_part"]
fn of_each() {
    let [integrated, card, first, second] = devices();
    let figures = |device: &Device| {
        let state = device.memory_state().unwrap();
        (state.free, state.total)
    };
    assert_eq!(figures(&card), (300, 3000));
    assert_eq!(figures(&first), (100, 1000));
    assert_eq!(figures(&second), (200, 2000));
    // All of the machine's memory is in use, and that is more than the device may have.
    assert_eq!(figures(&integrated), (0, 4096));
}

#[test]
fn devices_of_one_name_are_told_apart() {
    simulated("names", &[]);
}

#[test]
#[ignore = "run by devices_of_one_name_are_told_apart"]
fn names() {
    let names = devices().map(|device| device.to_string());
    let expected = [
        "GPU",
        "GPU (0000:03:00.0)",
        "GPU (0000:03:00.0, tile 0)",
        "GPU (0000:03:00.0, tile 1)",
    ];
    assert_eq!(names, expected);
}

#[test]
fn memory_that_is_not_reported_is_an_error_with_the_reason() {
    for (missing, reason) in [
        ("management", "zesInit"),
        ("devices", "system management does not list the device"),
        ("modules", "lists no memory module of the device"),
    ] {
        let variables = [("LACKS", missing), ("REASON", reason)];
        simulated("unreported", &variables);
    }
}

#[test]
#[ignore = "run by memory_that_is_not_reported_is_an_error_with_the_reason"]
fn unreported() {
    let reason = std::env::var("REASON").unwrap();
    for device in devices() {
        let message = message(&device);
        assert!(message.contains(&reason), "{message}");
    }
}

#[test]
fn an_old_driver_takes_the_devices_handle_if_a_variable_enables_it() {
    for (value, is_enabled) in [("1", true), ("0", false)] {
        let test = if is_enabled { "enabled" } else { "disabled" };
        let variables = [("LACKS", "management"), ("ZES_ENABLE_SYSMAN", value)];
        simulated(test, &variables);
    }
}

#[test]
#[ignore = "run by an_old_driver_takes_the_devices_handle_if_a_variable_enables_it"]
fn enabled() {
    assert_eq!(devices()[1].memory_state().unwrap().total, 3000);
}

#[test]
#[ignore = "run by an_old_driver_takes_the_devices_handle_if_a_variable_enables_it"]
fn disabled() {
    assert!(message(&devices()[1]).contains("zesInit"));
}

#[test]
fn a_library_without_devices_is_refused() {
    simulated("none", &[("LACKS", "GPUs")]);
}

#[test]
#[ignore = "run by a_library_without_devices_is_refused"]
fn none() {
    let message = Runtime::get().unwrap_err().to_string();
    assert!(
        message.contains("1 drivers, no GPU or CPU device"),
        "{message}"
    );
}
