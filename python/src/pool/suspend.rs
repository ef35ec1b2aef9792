//! Suspending and resuming a pool.

use pyo3::prelude::*;

use super::PyMemoryPool;
use crate::errors::{IntoException, OrRaise};
use crate::in_flight;
use crate::interpreter::{attach, detach};
use zeusm::Error;

/// An error of the wait for the work in flight, or of the suspension.
struct Raised(PyErr);

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Self(error.into_exception())
    }
}

#[pymethods]
impl PyMemoryPool {
    /// Gives the pool's physical memory back and keeps its addresses: memory objects, arrays and pointers that other packages have
    /// stay, and are valid again after `resume`. It waits for asynchronous operations of zeusm and for the pool's SYCL queue; wait for
    /// kernels on other queues before. No other thread may use the memory during the call.
    ///
    /// Meanwhile zeusm refuses to use the memory and to allocate from the pool; other packages must not use it. Memory can be freed.
    ///
    /// Parameters
    /// ----------
    /// keep : bool
    ///     Whether the contents are saved in host memory; otherwise they are lost.
    ///
    /// Returns
    /// -------
    /// int
    ///     The number of bytes given back.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For a pool without `suspendable=True`.
    /// zeusm.LevelZeroError, USMAllocationError
    ///     When Level Zero refuses, or the contents cannot be saved. Nothing is lost.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("device", suspendable=True)
    /// >>> memory = pool.malloc(1 << 20)
    /// >>> memory.memset(65)
    /// >>> pool.suspend() >= 1 << 20, pool.suspended
    /// (True, True)
    /// >>> pool.resume()
    /// >>> memory[:4].tobytes()
    /// b'AAAA'
    #[pyo3(signature = (keep=true))]
    fn suspend(&self, py: Python<'_>, keep: bool) -> PyResult<usize> {
        let binding = &self.binding;
        detach(py, || {
            let finish = |ranges: &[_]| {
                attach(|py| {
                    let shared = binding.context_device().shared_queue();
                    let mut queues = binding.queue().into_iter().chain(shared);
                    queues.try_for_each(|queue| queue.finish(py))?;
                    let events = in_flight::using(py, ranges, None, true)?;
                    events
                        .iter()
                        .try_for_each(|event| in_flight::wait(py, event, None, true).map(drop))
                })
                .map_err(Raised)
            };
            // SAFETY: `finish` has waited for zeusm's asynchronous operations, and later ones are refused, as each asks first whether
            // its memory is suspended. By the docstring no other thread is in an operation, and the caller has waited for other
            // packages' work.
            unsafe { self.pool.suspend(keep, finish) }
        })
        .map_err(|Raised(error)| error)
    }

    /// Puts physical memory at the pool's addresses again, and the contents there that were kept. Without an effect on a pool that is
    /// not suspended.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     For a pool without `suspendable=True`.
    /// zeusm.LevelZeroError
    ///     When Level Zero refuses, for instance when there is not enough memory. The pool stays suspended, and nothing is lost.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("device", suspendable=True)
    /// >>> memory = pool.malloc(1 << 20)
    /// >>> pool.suspend(keep=False) >= 1 << 20
    /// True
    /// >>> pool.resume()
    /// >>> pool.suspended
    /// False
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, || self.pool.resume()).or_raise()
    }

    /// Whether the pool is suspended.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> zm.MemoryPool("device", suspendable=True).suspended
    /// False
    #[getter]
    fn suspended(&self) -> bool {
        self.pool.provider().is_suspended()
    }
}
