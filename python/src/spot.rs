//! Where memory is, as Python sees it: a place, and the SYCL queue that goes with it.

use std::mem;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::dpctl::{self, Dpctl};
use super::memory::{Address, Owner, PyMemory, Reach};
use super::place::Place;
use super::syclobj::{Target, named};
use super::uses::Uses;
use crate::errors::OrRaise;
use zeusm::process::{Local, Mutex, Own};
use zeusm::sycl::QueueRef;
use zeusm::usm::UsmKind;

/// Where memory is. All memory that was made with one queue shares one.
pub(super) struct Spot {
    place: Arc<Place>,
    queue: PyOnceLock<SyclQueue>,
}

/// A `dpctl.SyclQueue`.
pub(super) struct SyclQueue {
    object: Py<PyAny>,
    /// Left alone by a fork's child: SYCL would take locks to drop it.
    reference: Own<QueueRef>,
    /// Whether an inherited queue answers in this process, once that has been tried.
    answers: Local<bool>,
}

/// How long a fork's child waits until a queue that it inherited says whether it is idle, which takes locks only.
const LOCKS: Duration = Duration::from_secs(2);
/// How long it then waits for work that may be its own.
const WORK: Duration = Duration::from_secs(5);

/// How many queues are remembered.
const MOST_REMEMBERED: usize = 4;

/// The spots of the queues that were named last, the newest first. They keep their queues alive, so that no other object
/// can be where one of them is.
static REMEMBERED: Mutex<Vec<Arc<Spot>>> = Mutex::new(Vec::new());

impl Spot {
    /// At a place, with a queue that is of it.
    pub(super) fn new(py: Python<'_>, place: Arc<Place>, queue: Option<SyclQueue>) -> Arc<Self> {
        let cell = PyOnceLock::new();
        if let Some(queue) = queue {
            // A fresh cell is empty, so this succeeds.
            let _ = cell.set(py, queue);
        }
        Arc::new(Self { place, queue: cell })
    }

    /// Where a SYCL object says. `role` is what the caller calls the object.
    pub(super) fn read(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Arc<Self>> {
        if let Some(known) = Self::remembered(object) {
            return Ok(known);
        }
        let py = object.py();
        let target = Target::read(object, role)?;
        let place = target.place().map_err(|error| named(role, py, error))?;
        target.accept(py);
        target.spot_at(py, &place)
    }

    /// The spot of a `dpctl.SyclQueue` that was named lately.
    pub(super) fn remembered(object: &Bound<'_, PyAny>) -> Option<Arc<Self>> {
        let mut remembered = REMEMBERED.lock();
        let place = remembered.iter().position(|spot| spot.is_of(object))?;
        // Most programs name one queue, which is where it should be already.
        remembered[..=place].rotate_right(1);
        remembered.first().cloned()
    }

    /// Remembers the spot of a queue for the next time that the queue is named.
    pub(super) fn remember(self: &Arc<Self>, py: Python<'_>) {
        let mut remembered = REMEMBERED.lock();
        // Another thread may have been here.
        let is_new = |queue: &SyclQueue| {
            !remembered
                .iter()
                .any(|spot| spot.is_of(queue.object.bind(py)))
        };
        if !self.queue(py).is_some_and(is_new) {
            return;
        }
        remembered.insert(0, Arc::clone(self));
        let forgotten = (remembered.len() > MOST_REMEMBERED).then(|| remembered.pop());
        drop(remembered);
        // The end of a queue may run anything.
        drop(forgotten);
    }

    fn is_of(&self, object: &Bound<'_, PyAny>) -> bool {
        let queue = self.queue.get(object.py());
        queue.is_some_and(|queue| queue.object.is(object))
    }

    /// Where memory goes when nobody says where.
    pub(super) fn default_one(py: Python<'_>) -> PyResult<Arc<Self>> {
        dpctl::default_spot(py).cloned()
    }

    pub(super) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// The SYCL queue, if there is one.
    pub(super) fn queue(&self, py: Python<'_>) -> Option<&SyclQueue> {
        self.queue.get(py)
    }

    /// The SYCL queue, made if there is none yet.
    pub(super) fn queue_or_new(&self, py: Python<'_>) -> PyResult<&SyclQueue> {
        self.queue.get_or_try_init(py, || {
            SyclQueue::new(&Dpctl::get(py)?.queue_of(py, &self.place)?)
        })
    }

    /// The same queue at another place of its context.
    pub(super) fn queue_at(&self, py: Python<'_>, place: &Arc<Place>) -> Arc<Self> {
        let queue = self.queue(py).map(|queue| queue.clone_ref(py));
        Self::new(py, Arc::clone(place), queue)
    }

    /// Memory there.
    pub(super) fn memory(
        self: Arc<Self>,
        pointer: usize,
        nbytes: usize,
        kind: UsmKind,
        read_only: bool,
        owner: Owner,
    ) -> PyMemory {
        PyMemory {
            address: match owner {
                Owner::Mapping(_) => Address::of_mapping(pointer),
                _ => Address::new(pointer),
            },
            nbytes,
            kind,
            read_only,
            alignment_bits: 0,
            reach: match owner {
                Owner::Allocation(_) => Reach::default(),
                _ => Reach::known(),
            },
            owner: Mutex::new(Some(owner)),
            uses: Uses::default(),
            spot: self,
        }
    }
}

impl SyclQueue {
    /// Reads a `dpctl.SyclQueue`.
    pub(super) fn new(queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: dpctl's queue object holds a valid reference for as long as it lives.
        let reference = unsafe { QueueRef::copy_from_raw(dpctl::address(queue)?) }.or_raise()?;
        Ok(Self {
            reference: Own::new(reference),
            object: queue.clone().unbind(),
            answers: Local::new(),
        })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            reference: Own::new((*self.reference).clone()),
            answers: Local::new(),
        }
    }

    pub(super) fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    pub(super) fn reference(&self) -> &QueueRef {
        &self.reference
    }

    /// Whether SYCL still answers for the queue. In a fork's child, a thread of the parent may have been in the middle of
    /// a submission, with locks of SYCL's or a command that nothing will complete. Such a queue has no work of the child's.
    pub(super) fn answers(&self, py: Python<'_>) -> bool {
        if !self.reference.is_inherited() {
            return true;
        }
        *self.answers.get_or_init(|| {
            let queue = (*self.reference).clone();
            let (tell, told) = mpsc::channel();
            let ask = thread::Builder::new().name("zeusm-inherited".to_owned());
            let asked = ask.spawn(move || {
                // The receiver may have lost patience.
                let is_idle = queue.is_idle();
                let _ = tell.send(is_idle);
                let _ = is_idle || tell.send(queue.wait().is_ok()).is_ok();
                // SYCL would take locks to drop it.
                mem::forget(queue);
            });
            asked.is_ok()
                && py.detach(move || match told.recv_timeout(LOCKS) {
                    Ok(false) => told.recv_timeout(WORK).unwrap_or(false),
                    answer => answer.unwrap_or(false),
                })
        })
    }

    /// Waits for what was submitted to it.
    pub(super) fn finish(&self, py: Python<'_>) -> PyResult<()> {
        if !self.answers(py) || self.reference.is_idle() {
            return Ok(());
        }
        // Not by way of dpctl's object, through which an exception of SYCL's would end the process.
        py.detach(|| self.reference.wait()).or_raise()
    }
}
