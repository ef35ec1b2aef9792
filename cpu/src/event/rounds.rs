//! The signals of a counter-based event that processes share.
//!
//! Each signal is a slot of a board, used once: the handle of an event names the slot of its latest signal, and so the event
//! that another process opens follows the command that had been submitted last by then.

use std::sync::Arc;

use zeusm_process::{Local, Mutex};

use super::board::{Board, Watcher};
use crate::engine::Signal;
use crate::memory::ShareError;

/// How many slots fit the one page of a board.
const SLOTS: u32 = 126;

/// A slot.
#[derive(Clone)]
pub struct Place {
    /// The board.
    pub watcher: Arc<Watcher>,
    /// Its number.
    pub index: u32,
}

impl Place {
    /// A signal whose state is the slot's.
    pub fn signal(&self, timed: bool) -> Arc<Signal> {
        self.watcher.signal(self.index, timed)
    }
}

/// The slots that an event uses one after another. They belong to one process.
#[derive(Default)]
pub struct Rounds(Local<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The next slot.
    next: Option<Place>,
    /// The boards that handles name: their descriptors stay open.
    exported: Vec<Arc<Watcher>>,
}

impl Rounds {
    /// A slot that has not been used. `flags` are the event's.
    ///
    /// # Errors
    /// The system's, when it refuses another memory file.
    pub fn next(&self, flags: u32) -> Result<Place, ShareError> {
        let mut state = self.0.get_or_default().lock();
        let place = match state.next.take() {
            Some(place) => place,
            None => Place {
                watcher: Arc::new(Watcher::new(Board::create(flags, SLOTS)?)),
                index: 0,
            },
        };
        if place.index + 1 < SLOTS {
            state.next = Some(Place {
                watcher: Arc::clone(&place.watcher),
                index: place.index + 1,
            });
        }
        Ok(place)
    }

    /// Keeps the board of `place` as long as the event lives.
    pub fn keep(&self, place: &Place) {
        let mut state = self.0.get_or_default().lock();
        let known = state.exported.iter();
        if !known
            .rev()
            .any(|watcher| Arc::ptr_eq(watcher, &place.watcher))
        {
            state.exported.push(Arc::clone(&place.watcher));
        }
    }
}
