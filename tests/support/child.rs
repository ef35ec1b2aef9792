//! Child processes that run one ignored test of the same file.

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
