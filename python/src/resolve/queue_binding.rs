//! A context and a device, bound to a SYCL queue of them.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use once_cell::race::OnceBox;
use pyo3::prelude::*;

use super::ContextDevice;
use crate::dpctl::SyclQueue;
use zeusm_process::SpinLock;

/// A [`ContextDevice`] and its SYCL queue, if there is one. All memory of one queue shares one binding.
pub(crate) struct QueueBinding {
    context_device: Arc<ContextDevice>,
    queue: OnceBox<SyclQueue>,
}

/// The number of cached bindings.
const MOST_REMEMBERED: usize = 4;

/// A cache of the bindings of the queues used last, the newest first. The bindings keep their queues alive, so that no other
/// object can have the address of one of these.
static REMEMBERED: OnceBox<SpinLock<Vec<Arc<QueueBinding>>>> = OnceBox::new();
/// Set when the interpreter is about to exit, and never reset.
static EXITING: AtomicBool = AtomicBool::new(false);

/// How often the exit tries to empty the cache.
const MOST_TRIES: usize = 1000;

/// Empties the cache when the interpreter exits. A SYCL context that is alive after that has kernels, which SYCL releases
/// when their libraries are unloaded. Intel's driver no longer exists by then if it was loaded before SYCL, and the call
/// crashes.
pub(crate) fn forget() {
    EXITING.store(true, Ordering::Relaxed);
    // Without a GIL another thread may use it, for less than a microsecond unless the system interrupts the thread; or, in a
    // fork's child, a thread that the child does not have, for ever.
    let remembered = REMEMBERED.get_or_init(Box::default);
    for _ in 0..MOST_TRIES {
        let forgotten = remembered.try_lock().map(|mut all| mem::take(&mut *all));
        // Outside of the lock, as the drop of a queue may run arbitrary code.
        if forgotten.is_some() {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

impl QueueBinding {
    /// Binds a queue of the same context and device.
    pub(crate) fn new(context_device: Arc<ContextDevice>, queue: Option<SyclQueue>) -> Arc<Self> {
        let queue = match queue {
            Some(queue) => OnceBox::with_value(Box::new(queue)),
            None => OnceBox::new(),
        };
        Arc::new(Self {
            context_device,
            queue,
        })
    }

    /// The cached binding of a `dpctl.SyclQueue`.
    #[inline(always)] // An allocation on a queue takes a thousand instructions.
    pub(super) fn remembered(object: &Bound<'_, PyAny>) -> Option<Arc<Self>> {
        let mut remembered = REMEMBERED.get()?.try_lock()?;
        let found = remembered
            .iter()
            .position(|binding| binding.is_of(object))?;
        // Most programs use one queue, which is then the first entry.
        if found > 0 {
            remembered[..=found].rotate_right(1);
        }
        remembered.first().cloned()
    }

    /// Adds the binding to the cache, unless the interpreter is exiting.
    pub(super) fn remember(self: &Arc<Self>, py: Python<'_>) {
        let Some(queue) = self.queue() else { return };
        let mut evicted = None; // Dropped after the lock, as the drop of a queue may run arbitrary code.
        let is_same = |binding: &Arc<Self>| binding.is_of(queue.object().bind(py));
        if let Some(mut remembered) = REMEMBERED.get_or_init(Box::default).try_lock()
            // With the lock, so that nothing is added after the exit has emptied it. Another thread may have added it.
            && !EXITING.load(Ordering::Relaxed)
            && !remembered.iter().any(is_same)
        {
            remembered.insert(0, Arc::clone(self));
            if remembered.len() > MOST_REMEMBERED {
                evicted = remembered.pop();
            }
        }
        drop(evicted);
    }

    fn is_of(&self, object: &Bound<'_, PyAny>) -> bool {
        let queue = self.queue.get();
        queue.is_some_and(|queue| queue.object().is(object))
    }

    pub(crate) fn context_device(&self) -> &Arc<ContextDevice> {
        &self.context_device
    }

    /// The SYCL queue, if there is one.
    pub(crate) fn queue(&self) -> Option<&SyclQueue> {
        self.queue.get()
    }

    /// The SYCL queue; if there is none, binds dpctl's cached queue of the context and the device.
    ///
    /// # Errors
    /// `RuntimeError` when there is no SYCL context.
    pub(crate) fn queue_or_cached(&self, py: Python<'_>) -> PyResult<&SyclQueue> {
        self.queue.get_or_try_init(|| {
            let queue = self.context_device.cached_queue(py)?;
            Ok(Box::new(queue.clone_ref(py)))
        })
    }

    /// The same queue with another device of its context.
    pub(crate) fn with_device(
        &self,
        py: Python<'_>,
        context_device: &Arc<ContextDevice>,
    ) -> Arc<Self> {
        let queue = self.queue().map(|queue| queue.clone_ref(py));
        Self::new(Arc::clone(context_device), queue)
    }
}
