//! What comes before a task, as far as that can be followed without waiting for our own workers.

use std::sync::Arc;

use smallvec::SmallVec;

use super::flight::Flight;
use super::task::Task;

/// The way to a task: launches that OpenCL orders by itself, and markers, which only tell that those are over.
///
/// A launch takes off at once when there is nothing else before it. Whoever lands it lands its path first.
#[derive(Clone, Default)]
pub struct Path {
    /// Launches that have been given to OpenCL.
    pub flights: SmallVec<[Arc<Flight>; 2]>,
    /// Markers that come after no more than flights and markers.
    pub markers: SmallVec<[Arc<Task>; 2]>,
    /// Whether something else comes before the task as well.
    pub is_partial: bool,
}

impl Path {
    /// After a launch, which is named once and not when it is over.
    pub fn add_flight(&mut self, flight: &Arc<Flight>) {
        let is_it = |known: &Arc<Flight>| Arc::ptr_eq(known, flight);
        if !flight.has_landed() && !self.flights.iter().any(is_it) {
            self.flights.push(Arc::clone(flight));
        }
    }

    /// After a marker and what comes `before` it, unless something else in this path is known to come after that.
    pub fn add_marker(&mut self, marker: Arc<Task>, before: &Path, implied: bool) {
        if self.markers.iter().any(|known| Arc::ptr_eq(known, &marker)) {
            return;
        }
        if !implied {
            before
                .flights
                .iter()
                .for_each(|flight| self.add_flight(flight));
        }
        self.markers.push(marker);
    }

    /// Waits for all of it, and takes part in the work.
    pub fn join(&self) {
        self.flights.iter().for_each(Flight::join);
        self.markers.iter().for_each(Task::settle);
    }
}
