//! The checker: reports what would go wrong on a discrete GPU, instead of letting it work by accident.
//!
//! It is off unless `ZEUSM_CHECK` is set when the driver is initialised; then each hook costs one branch ([`is_on`]).
//!
//! - `properties`: what is told of an allocation. `watch`: one with guard pages, and who may access its pages. `table`: all of them, and freed ones in
//!   quarantine. `fault`: the handler of the accesses that the pages forbid; `chain`: the program's own handlers;
//!   `step`, `repeats`: how the program goes on after one. `threads`: which threads may access device
//!   memory, as they execute device code.
//! - `uses`: what is told of a command. `commands`: what is ordered before what, from which races follow.
//! - `poison`: bytes that were never written.
//! - `stack`, `unwind`, `python`: where it happened. `finding`, `report`, `sarif`, `suppressions`, `file`, `say`: what is told about it, and
//!   where. `settings`: the environment.
//! - `hooks`: what the rest of the runtime calls.
//!
//! No lock of the checker is held while memory of the program is accessed, or while another one than `table`'s and
//! `watch`'s, in this order, or `report`'s, is taken.

mod chain;
mod commands;
mod fault;
mod file;
mod finding;
mod hooks;
mod poison;
mod properties;
mod python;
mod repeats;
mod report;
mod sarif;
mod say;
pub mod settings;
mod stack;
mod step;
mod suppressions;
mod table;
mod threads;
mod unwind;
mod uses;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};

pub use hooks::*;
pub use properties::Properties;
pub use settings::is_on;
pub use threads::DeviceCode;
pub use uses::{Place, Uses, Wait};
pub use watch::Watch;
use zeusm_process::AtFork;

/// Called by the dynamic loader: an adapter of SYCL that is linked to this library reads its variables next.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    if settings::get().on {
        settings::disable_pools();
    }
}

/// Turns the checker on, if the environment asks for it.
pub fn begin() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !settings::get().on {
        return;
    }
    if !DONE.swap(true, Ordering::AcqRel) {
        fault::stay_installed();
        settings::turn_on();
    }
    // The interpreter may come later than the first initialisation.
    python::find();
}

/// What a fork holds, in the order in which threads lock it.
pub fn at_fork() -> [&'static dyn AtFork; 6] {
    [
        report::at_fork(),
        python::at_fork(),
        table::at_fork(),
        watch::at_fork(),
        fault::at_fork(),
        step::at_fork(),
    ]
}

/// The child of a fork begins without commands in flight and with a report of its own. It has the locks no more.
pub fn child() {
    if is_on() {
        threads::child();
        table::child();
    }
}
