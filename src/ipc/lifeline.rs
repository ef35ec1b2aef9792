//! The end of the processes whose events this one has opened: the events that they have not signalled then fail, which releases
//! the host threads and the commands of devices that wait for them.

use std::collections::HashMap;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread;

use zeusm_process::{Local, Mutex};

use super::Error;
use super::shared_event::SharedEvent;
use super::socket::Token;
use crate::event::Shared;
use crate::exit;

/// The opened events of each process that is being watched, by the token of its socket. A fork's child watches none: its parent's
/// events are complete there.
static WATCHED: Local<Mutex<HashMap<Token, Vec<Weak<SharedEvent>>>>> = Local::new();

/// Has the event fail if the process with this token ends before it is signalled. `lifeline` is that process's pipe.
///
/// # Errors
/// [`Error::System`] when no thread can be started.
pub fn watch(token: Token, lifeline: OwnedFd, event: &Arc<SharedEvent>) -> Result<(), Error> {
    let mut watched = WATCHED.get_or_default().lock();
    if !watched.contains_key(&token) {
        exit::wait_at_exit();
        let thread = thread::Builder::new().name("zeusm-lifeline".to_owned());
        let lifeline = PipeReader::from(lifeline);
        thread
            .spawn(move || fail_at_end(token, lifeline))
            .map_err(|cause| Error::System {
                what: "cannot start a thread that watches the process of the event",
                cause,
            })?;
    }
    let events = watched.entry(token).or_default();
    events.retain(|it| it.strong_count() > 0);
    events.push(Arc::downgrade(event));
    Ok(())
}

/// Waits for the end of the process, of which nothing is ever written to the pipe.
fn fail_at_end(token: Token, mut lifeline: PipeReader) {
    let _ = lifeline.read_exact(&mut [0]);
    // Once the process is known to have ended, whatever it has signalled is visible.
    exit::inside(|| {
        // Events that are opened later start another thread.
        let events = WATCHED.get_or_default().lock().remove(&token);
        for event in events.iter().flatten().filter_map(Weak::upgrade) {
            event.fail();
        }
    });
}
