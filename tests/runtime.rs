//! Which runtime serves, and why. Choices last for a process, so each one is made in a child.
#![allow(clippy::unwrap_used)]

use std::env;
use std::process::Command;

use zeusm::runtime::{Choice, RuntimeKind};
use zeusm::{Error, Runtime};

/// Runs one ignored test of this file in a process of its own.
fn child(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    for name in ["ZEUSM_RUNTIME", "ZEUSM_CPU_LIBRARY"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn the_runtime_tells_what_it_is() {
    let runtime = Runtime::get().unwrap();
    assert!(std::ptr::eq(runtime, Runtime::get().unwrap()));
    assert!(!runtime.reason().is_empty());
    assert!(runtime.path().is_absolute(), "{}", runtime.path().display());
    // What the caller set up is what is tested.
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
    assert!(!runtime.devices().is_empty());
    for device in runtime.devices() {
        assert!(device.is_gpu());
        assert!(device.largest_allocation() > 0);
        assert!(!device.name().is_empty());
    }
    assert!(runtime.drivers()[0].api_version().unwrap() >= (1, 0));
}

#[test]
fn the_cpu_says_that_it_is_one() {
    child("child_cpu", &[("ZEUSM_RUNTIME", "cpu")]);
}

#[test]
#[ignore = "run by the_cpu_says_that_it_is_one"]
fn child_cpu() {
    let runtime = Runtime::get().unwrap();
    assert_eq!(runtime.kind(), RuntimeKind::Cpu);
    let name = runtime.default_device().unwrap().name().to_owned();
    assert!(name.contains("CPU"), "{name}");
    assert!(matches!(
        Runtime::choose(&Choice::Cpu),
        Err(Error::AlreadyServing { .. })
    ));
}

#[test]
fn a_library_that_is_not_there_is_an_error_with_its_path() {
    child(
        "child_missing",
        &[("ZEUSM_CPU_LIBRARY", "/nowhere/libze_loader.so.1")],
    );
}

#[test]
#[ignore = "run by a_library_that_is_not_there_is_an_error_with_its_path"]
fn child_missing() {
    let error = Runtime::choose(&Choice::Cpu).unwrap_err();
    assert!(matches!(error, Error::Chosen { .. }));
    assert!(
        error.to_string().contains("/nowhere/libze_loader.so.1"),
        "{error}"
    );
    let error = Runtime::choose(&Choice::Path("/nowhere/else.so".into())).unwrap_err();
    assert!(error.to_string().contains("ZEUSM_RUNTIME"), "{error}");
    assert!(error.to_string().contains("/nowhere/else.so"), "{error}");
    // A library without Level Zero in it.
    let error = Runtime::choose(&Choice::Path("libc.so.6".into())).unwrap_err();
    assert!(error.to_string().contains("zeInit"), "{error}");
}

#[test]
fn a_choice_that_means_nothing_is_an_error() {
    child("child_nonsense", &[("ZEUSM_RUNTIME", "the fast one")]);
}

#[test]
#[ignore = "run by a_choice_that_means_nothing_is_an_error"]
fn child_nonsense() {
    let error = Runtime::get().unwrap_err();
    assert!(matches!(error, Error::Choice { .. }));
    assert!(error.to_string().contains("the fast one"), "{error}");
    // Nothing serves yet, so another choice may still be made.
    assert_eq!(
        Runtime::choose(&Choice::Cpu).unwrap().kind(),
        RuntimeKind::Cpu
    );
}
