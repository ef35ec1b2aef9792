//! A submitted operation that could not run in its caller.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use level_zero_sys as sys;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::flight::Flight;
use super::helper::help;
use super::operation::{Operation, Pins};
use super::path::Path;
use super::signal::{Setter, Signal};
use super::workers::dispatch;
use crate::answer::Answer;
use crate::clock;
use crate::event::Event;
use crate::launch::Launch;
use crate::opencl::{self, Queue, Runtime};

/// The first error of a stream's operations since the host last asked; 0 is none.
#[derive(Default)]
pub struct Fault(AtomicU32);

impl Fault {
    /// Notes an error unless there is one already.
    pub fn note(&self, code: sys::ze_result_t) {
        let _ = self
            .0
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Reports the error once.
    pub fn take(&self) -> Result<(), sys::ze_result_t> {
        match self.0.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            code => Err(sys::ze_result_t(code)),
        }
    }
}

/// What the tasks of one stream share.
#[derive(Default)]
pub struct Lane {
    /// The first error.
    pub fault: Fault,
    /// Where launches go, once there has been one.
    queue: OnceLock<Queue>,
    /// How many launches are in the air.
    pub up: AtomicUsize,
}

impl Lane {
    /// The queue for launches.
    fn queue(&self) -> Answer<&Queue> {
        if let Some(queue) = self.queue.get() {
            return Ok(queue);
        }
        let runtime = Runtime::get().map_err(|_| sys::ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)?;
        let queue = Queue::new(runtime).map_err(|_| sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
        Ok(self.queue.get_or_init(|| queue))
    }
}

/// An operation, what it still waits for, and what its end makes known.
pub struct Task {
    operation: Arc<dyn Operation>,
    parts: usize,
    short: bool,
    /// Signals that have not been given yet, and one more while the task is being submitted.
    blockers: AtomicUsize,
    claimed: AtomicUsize,
    finished: AtomicUsize,
    started: AtomicU64,
    pins: Mutex<Pins>,
    /// What comes before it.
    path: Mutex<Path>,
    /// Whether `path` is complete.
    submitted: AtomicBool,
    /// The event to signal, and its round.
    event: Option<(Arc<Event>, Arc<Signal>)>,
    done: Arc<Signal>,
    lane: Arc<Lane>,
}

impl Task {
    /// A task that cannot start before it has been [`submitted`](Self::submitted).
    pub fn new(
        operation: Arc<dyn Operation>,
        pins: Pins,
        event: Option<Arc<Event>>,
        done: Arc<Signal>,
        lane: Arc<Lane>,
    ) -> Arc<Self> {
        let task = Arc::new(Self {
            parts: operation.parts().max(1),
            short: operation.is_short(),
            operation,
            blockers: AtomicUsize::new(1),
            claimed: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            pins: Mutex::new(pins),
            path: Mutex::default(),
            submitted: AtomicBool::new(false),
            event: event.map(|event| {
                let round = event.begin();
                (event, round)
            }),
            done,
            lane,
        });
        task.done.await_task(&task);
        if let Some((_, round)) = &task.event {
            round.await_task(&task);
        }
        task
    }

    /// One more thing to wait for.
    pub fn block(&self) {
        self.blockers.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends its submission; `true` when it may start.
    pub fn submitted(self: &Arc<Self>) -> bool {
        self.submitted.store(true, Ordering::Release);
        self.unblock()
    }

    /// One thing less to wait for; `true` when it was the last and the task may start.
    pub fn unblock(self: &Arc<Self>) -> bool {
        self.blockers.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether it is up to threads of ours to run it, and they may.
    pub fn is_for_workers(&self) -> bool {
        !self.is_launch() && self.blockers.load(Ordering::Acquire) == 0
    }

    /// How many threads can work on it at once.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Whether it is not worth waking a thread for.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Runs parts until none is left to claim. The thread that ends the last part gets the tasks that may start now.
    pub fn work(&self) -> Vec<Arc<Task>> {
        loop {
            let part = self.claimed.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return Vec::new();
            }
            if part == 0 {
                self.started.store(clock::now(), Ordering::Relaxed);
            }
            if let Err(code) = self.operation.run(part) {
                self.lane.fault.note(code);
            }
            if self.finished.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
                return self.complete(self.started.load(Ordering::Relaxed), clock::now());
            }
        }
    }

    /// Whether it is a launch that keeps more than one processor busy for a while.
    pub fn is_large(&self) -> bool {
        self.operation.as_launch().is_some_and(Launch::is_large)
    }

    /// Whether OpenCL runs it.
    pub fn is_launch(&self) -> bool {
        self.operation.as_launch().is_some()
    }

    /// Notes that it comes after what will set a signal. Whether that is all there is to do: a launch need not wait
    /// for what OpenCL puts before it. With `implied`, something else that it follows comes after the same launches.
    pub fn follow(&self, setter: Setter, implied: bool) -> bool {
        match setter {
            Setter::Flight(_) if implied => {}
            Setter::Flight(flight) => self.path.lock().add_flight(flight),
            Setter::Task(task) => {
                let marker = task.and_then(|task| Some((task.marked_path()?, task)));
                let mut path = self.path.lock();
                match marker {
                    Some((before, marker)) => path.add_marker(marker, &before, implied),
                    None => {
                        path.is_partial = true;
                        return false;
                    }
                }
            }
        }
        self.is_launch()
    }

    /// What is known to come before it.
    pub fn path(&self) -> Path {
        self.path.lock().clone()
    }

    /// What a marker marks, if that is nothing but a path.
    fn marked_path(&self) -> Option<Path> {
        // A task can follow itself: an operation may wait for the event that it signals.
        if !self.operation.is_marker() || !self.submitted.load(Ordering::Acquire) {
            return None;
        }
        Some(self.path()).filter(|path| !path.is_partial)
    }

    /// Makes a marker's end known whose path is behind, but for markers.
    pub fn settle(self: &Arc<Self>) {
        let mut way = vec![Arc::clone(self)];
        while let Some(marker) = way.last() {
            let before = marker.path().markers;
            let length = way.len();
            way.extend(before.into_iter().filter(|marker| !marker.done.is_set()));
            if way.len() == length
                && let Some(marker) = way.pop()
            {
                dispatch(marker.work());
                // Another thread may be about to do the same, which is a matter of moments.
                marker.done.wait_idly();
            }
        }
    }

    /// Gives a launch to OpenCL; everything that it waits for has happened or is in the air. Returns the tasks that
    /// may start now, which there are only if OpenCL refuses.
    pub fn take_off(self: &Arc<Self>) -> Vec<Arc<Task>> {
        let path = mem::take(&mut *self.path.lock());
        match self.enqueue(&path) {
            Ok((event, queue)) => {
                let flight = Flight::new(event, Arc::clone(&self.lane), Arc::clone(self), path);
                self.done.expect(&flight);
                if let Some((_, round)) = &self.event {
                    round.expect(&flight);
                }
                flight.watch();
                // A queue that cannot be flushed cannot be waited for either, which is where the error comes out.
                let _ = queue.flush();
                if flight.has_company() {
                    help(&flight);
                }
                Vec::new()
            }
            Err(code) => {
                self.lane.fault.note(code);
                path.join();
                self.complete(clock::now(), clock::now())
            }
        }
    }

    fn enqueue(&self, path: &Path) -> Answer<(opencl::Event, &Queue)> {
        let queue = self.lane.queue()?;
        let launch = self
            .operation
            .as_launch()
            .ok_or(sys::ZE_RESULT_ERROR_UNKNOWN)?;
        // What has landed is not named again: this may be called at the end of that very flight, by an OpenCL runtime
        // that holds the event's lock meanwhile.
        let after: SmallVec<[_; 4]> = path
            .flights
            .iter()
            .filter(|flight| flight.is_up())
            .map(|flight| flight.event())
            .collect();
        self.started.store(clock::now(), Ordering::Relaxed);
        launch.enqueue(queue, &after).map(|event| (event, queue))
    }

    /// Whether the times at which it runs are wanted.
    pub fn is_timed(&self) -> bool {
        let event = self.event.as_ref();
        event.is_some_and(|(event, _)| event.is_timed())
    }

    /// The end of a flight: how, and when it ran. Returns the tasks that may start now.
    pub fn land(
        &self,
        outcome: Result<(), opencl::Error>,
        times: Option<opencl::Times>,
    ) -> Vec<Arc<Task>> {
        if outcome.is_err() {
            self.lane.fault.note(sys::ZE_RESULT_ERROR_UNKNOWN);
        }
        let (mut started, mut ended) = (self.started.load(Ordering::Relaxed), clock::now());
        if let Some(times) = times {
            // OpenCL's clock is ours on every runtime known; on any other, the times stay within what is certain.
            started = times.start.clamp(started, ended);
            ended = times.end.clamp(started, ended);
        }
        self.complete(started, ended)
    }

    /// Takes apart a task that will never run, and returns those that only it could have set free.
    pub fn dismantle(self) -> Vec<Arc<Task>> {
        let mut signals = vec![self.done];
        if let Some((event, round)) = self.event {
            drop(event);
            signals.push(round);
        }
        signals
            .into_iter()
            .filter_map(Arc::into_inner)
            .flat_map(Signal::into_tasks)
            .collect()
    }

    /// Makes the end known: first lets go of memory, then signals the event, then the stream.
    fn complete(&self, started: u64, ended: u64) -> Vec<Arc<Task>> {
        self.pins.lock().clear();
        let path = mem::take(&mut *self.path.lock());
        drop(path);
        let mut ready = match &self.event {
            Some((event, round)) => event.complete(round, started, ended),
            None => Vec::new(),
        };
        ready.append(&mut self.done.set());
        ready
    }
}
