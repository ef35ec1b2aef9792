//! Child processes that run one test of the same file.

use std::any::type_name;
use std::env;
use std::process::{Command, Output};

/// A command that runs one ignored test of this program in a new process, and shows its output.
pub fn command(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// Runs the command, whose test must pass; returns the standard output.
pub fn run(mut command: Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let (output, errors) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    let passed = status.success() && output.contains("1 passed");
    assert!(passed, "{command:?}\n{output}\n{errors}");
    output.into_owned()
}

/// Runs the rest of the calling test, `body`, in a process of its own, with these variables.
#[allow(dead_code, reason = "some test files use `command` only")]
pub fn alone<F: FnOnce()>(variables: &[(&str, &str)], body: F) {
    const IS_ALONE: &str = "ZEUSM_TEST_ALONE";
    if env::var_os(IS_ALONE).is_some() {
        return body();
    }
    // The path of the closure begins with the crate's name.
    let test = type_name::<F>().strip_suffix("::{{closure}}").unwrap();
    let (_, test) = test.split_once("::").unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env(IS_ALONE, "1").envs(variables.iter().copied());
    run(command);
}
