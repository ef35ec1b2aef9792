//! The simulator's messages on standard error.

use std::fmt::Arguments;
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

/// Reports an unsupported operation by name and aborts the process, because a run that continued would prove nothing.
pub(crate) fn not_simulated(what: Arguments<'_>) -> ! {
    say(format_args!("not simulated: {what}"));
    process::abort()
}
