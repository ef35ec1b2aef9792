//! A thread that takes part in OpenCL's work while streams run side by side.
//!
//! OpenCL's runtime for the CPU has one worker less than there are processors, and counts on the threads that wait.
//! As long as nobody waits, a machine with two processors would run two independent kernels one after the other.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::flight::Flight;

/// Has the helper take part until `flight` has landed, once it is done with what it was asked before.
pub fn help(flight: &Arc<Flight>) {
    static HELPER: OnceLock<Option<Sender<Arc<Flight>>>> = OnceLock::new();
    let helper = HELPER.get_or_init(|| {
        let (sender, flights) = channel::<Arc<Flight>>();
        let work = move || {
            flights
                .iter()
                .filter(Flight::is_up)
                .for_each(|flight| flight.join())
        };
        let thread = thread::Builder::new()
            .name("zeusm-cpu-helper".to_owned())
            .spawn(work);
        thread.ok().map(|_| sender)
    });
    if let Some(helper) = helper {
        // It never ends before the process does.
        let _ = helper.send(Arc::clone(flight));
    }
}
