//! The simulator's messages on standard error.

use std::fmt::Arguments;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process;

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

/// Appends a line to a file.
pub(crate) fn append(file: &str, line: Arguments<'_>) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}
