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
    /// Waits for all of it, and takes part in the work.
    pub fn join(&self) {
        self.flights.iter().for_each(Flight::join);
        self.markers.iter().for_each(Task::settle);
    }
}
