//! The simulator's messages on standard error.

use std::fmt::{Arguments, Display};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::panic;
use std::process;
use std::str::FromStr;

use crate::settings;

/// Reports an error of the program under test or the effect of an injected fault.
pub(crate) fn say(what: Arguments<'_>) {
    eprintln!("xe-sim[{}]: {what}", process::id());
}

/// Logs an event if `XE_SIM_LOG` is set.
pub(crate) fn log(what: Arguments<'_>) {
    if settings::logs() {
        say(what);
    }
}

/// Lists what the simulated programs needed and the simulator lacks.
const LACKS: &str = "/run/xe-sim/not-simulated";

/// Reports an unsupported operation by name and aborts the process, because a run that continued would prove nothing. The
/// report is also written to a file, because a test may expect its child process to die.
pub(crate) fn not_simulated(what: Arguments<'_>) -> ! {
    say(format_args!("not simulated: {what}"));
    if let Err(error) = append(LACKS, format_args!("{} {what}", process::id())) {
        say(format_args!("{LACKS}: {error}"));
    }
    process::abort()
}

/// Reports the flags of a request that are not among those that are simulated.
pub(crate) fn check_flags(request: &str, flags: u32, simulated: u32) {
    let unknown = flags & !simulated;
    if unknown != 0 {
        not_simulated(format_args!("{request} with flags {unknown:#x}"));
    }
}

/// The parsed value of a variable. A malformed value aborts the process, because a run without the requested fault would
/// prove nothing.
pub(crate) fn value<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    settings::parse(name).unwrap_or_else(|why| not_simulated(format_args!("{why}")))
}

/// Has panics of the simulator reported like an unsupported operation: with its thread gone, the program would wait for it
/// without end.
pub(crate) fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let text = panic.payload_as_str().unwrap_or("no message");
        not_simulated(format_args!("the simulator panicked: {text}"));
    }));
}

/// Appends a line to a file.
pub(crate) fn append(file: &str, line: Arguments<'_>) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Runs `body` in a child process, which must abort, and returns what it wrote to standard error. `test` is the full name of
/// the calling test, which the child runs up to this call.
#[cfg(test)]
pub(crate) fn in_child(test: &str, body: impl FnOnce()) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    const CHILD: &str = "XE_SIM_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        body();
        process::exit(0);
    }
    let output = std::env::current_exe()
        .and_then(|program| {
            process::Command::new(program)
                .args(["--exact", test, "--nocapture"])
                .env(CHILD, test)
                .output()
        })
        .unwrap_or_else(|error| panic!("{test} in a child process: {error}"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{told}");
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_thread_is_reported_and_ends_the_process() {
        let told = in_child(
            "report::tests::a_panic_of_a_thread_is_reported_and_ends_the_process",
            || {
                report_panics();
                let _ = std::thread::spawn(|| panic!("index {}", 7)).join();
            },
        );
        let expected = "not simulated: the simulator panicked: index 7";
        assert!(told.contains(expected), "{told}");
    }
}
