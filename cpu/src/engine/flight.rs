//! Operations that another runtime runs by itself: kernels, once OpenCL has been given them.

use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::task::Task;
use super::workers::dispatch;
use crate::opencl;

/// Flights that come before another.
pub type Flights = SmallVec<[Arc<Flight>; 2]>;

/// A task between its start and its end, neither of which takes a thread of ours.
///
/// Its end is noticed by whoever comes first: OpenCL's callback, or a host thread that waits for it. The latter asks
/// OpenCL to wait, so that the thread works on the kernel instead of sleeping.
pub struct Flight {
    event: opencl::Event,
    /// The queue it is in, which alone orders it after what was put there before.
    queue: Arc<opencl::Queue>,
    state: Mutex<State>,
}

struct State {
    /// `None` once it has landed.
    task: Option<Arc<Task>>,
    /// Flights that OpenCL ends before this one.
    after: Flights,
}

impl Flight {
    /// What OpenCL was given for `task`.
    pub fn new(
        event: opencl::Event,
        queue: Arc<opencl::Queue>,
        task: Arc<Task>,
        after: Flights,
    ) -> Arc<Self> {
        let state = Mutex::new(State {
            task: Some(task),
            after,
        });
        Arc::new(Self {
            event,
            queue,
            state,
        })
    }

    /// The event for a launch in another queue to wait for.
    pub fn event(&self) -> &opencl::Event {
        &self.event
    }

    /// Whether it is in `queue`.
    pub fn is_in(&self, queue: &Arc<opencl::Queue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    /// Has OpenCL tell of its end.
    pub fn watch(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let told = self.event.on_complete(move || this.land());
        if told.is_err() {
            self.join();
        }
    }

    /// Waits for its end and makes that known. The calling thread takes part in the work.
    pub fn join(self: &Arc<Self>) {
        // How it ended is told when it lands.
        let _ = self.event.wait();
        self.land();
    }

    /// Makes its end known, and before it that of all flights it comes after: whoever sees this one signalled must
    /// see those signalled too. There may be many, so this does not recurse.
    fn land(self: &Arc<Self>) {
        let mut path = vec![Arc::clone(self)];
        while let Some(flight) = path.last() {
            let before: Flights = flight
                .state
                .lock()
                .after
                .iter()
                .filter(|it| it.is_up())
                .cloned()
                .collect();
            if before.is_empty() {
                flight.finish();
                path.pop();
            } else {
                path.extend(before);
            }
        }
    }

    /// Whether it has yet to land.
    fn is_up(&self) -> bool {
        self.state.lock().task.is_some()
    }

    fn finish(&self) {
        let mut state = self.state.lock();
        state.after.clear();
        let Some(task) = state.task.take() else {
            return;
        };
        let ready = task.land(&self.event);
        drop(state);
        dispatch(ready);
    }
}
