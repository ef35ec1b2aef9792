//! What the simulator says on standard error.

use std::fmt::Arguments;
use std::process;

use crate::settings;

/// Says what the program under test did wrong, or what a fault did to it.
pub(crate) fn say(what: Arguments<'_>) {
    eprintln!("xe-sim[{}]: {what}", process::id());
}

/// Says what happens, where `XE_SIM_LOG` asks for it.
pub(crate) fn log(what: Arguments<'_>) {
    if settings::logs() {
        say(what);
    }
}

/// Ends the process by a name: the driver asked for a thing that is not simulated, and a run that went on would prove
/// nothing.
pub(crate) fn not_simulated(what: Arguments<'_>) -> ! {
    say(format_args!("not simulated: {what}"));
    process::abort()
}
