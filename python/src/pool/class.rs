//! `MemoryPool`.

use std::sync::Arc;

use pyo3::PyTraverseError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use super::{PyPoolScope, PyPoolStatistics};
use crate::getters::methods;
use crate::interpreter::{attach, detach};
use crate::parse::{number, usm_kind};
use crate::resolve::{QueueBinding, binding_or_default};
use crate::shown::{class_name, table};
use crate::stacks;
use zeusm::pool::{Growth, Options, Pool};
use zeusm::usm::LevelZeroProvider;
use zeusm::usm::UsmKind;
use zeusm::{Error, with_drops};
use zeusm_process::{Bytes, Mutex};

/// A pool of USM of one kind, in one context, for one device. Blocks return to the pool when they are freed, on any thread.
/// The pool is destroyed when the object and all of its blocks are freed.
///
/// Parameters
/// ----------
/// usm_type : str
///     'device', 'shared' or 'host'.
/// queue : optional
///     The context and the device, as for `MemoryUSMShared`.
/// limit : int, optional
///     The maximum number of bytes that the pool holds, in use or not.
/// largest_cache : int, optional
///     The maximum size of the cache of free large blocks in bytes; by default 512 MiB.
/// first_slab, largest_slab : int, optional
///     The bounds in bytes of the slabs that small blocks are cut from; by default 64 KiB and 2 MiB.
/// suspendable : bool
///     Whether the pool can be suspended, for device memory only. Its memory cannot be shared with other processes.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> pool = zm.MemoryPool("shared", limit=1 << 30)
/// >>> memory = pool.malloc(1000)
/// >>> pool.statistics().requested_bytes
/// 1000
/// >>> del memory
/// >>> pool.used_bytes(), pool.free_all_blocks() > 0, pool.total_bytes()
/// (0, True, 0)
#[pyclass(name = "MemoryPool", module = "zeusm.memory", frozen, weakref)]
pub(crate) struct PyMemoryPool {
    /// The context and device of its memory.
    pub(crate) binding: Arc<QueueBinding>,
    pub(crate) pool: Pool<LevelZeroProvider>,
    /// The failure callback of a pool that only this object refers to; stored here, it is visible to the garbage collector.
    /// A default pool has several Python objects, and owns its callback itself.
    callback: Option<Arc<Callback>>,
}

type Callback = Mutex<Option<Py<PyAny>>>;

impl PyMemoryPool {
    pub(crate) fn kind(&self) -> UsmKind {
        self.pool.provider().kind()
    }
}

#[pymethods]
impl PyMemoryPool {
    #[new]
    #[pyo3(signature = (
        usm_type, *, queue=None, limit=None, largest_cache=None, first_slab=None, largest_slab=None, suspendable=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn make(
        py: Python<'_>,
        usm_type: &str,
        queue: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
        largest_cache: Option<&Bound<'_, PyAny>>,
        first_slab: Option<&Bound<'_, PyAny>>,
        largest_slab: Option<&Bound<'_, PyAny>>,
        suspendable: bool,
    ) -> PyResult<Self> {
        let kind = usm_kind(usm_type)?;
        if suspendable && kind != UsmKind::Device {
            return Err(PyValueError::new_err(format!(
                "a pool of USM-{kind} memory cannot be suspended: Level Zero gives back the physical memory of devices only"
            )));
        }
        let usual = Options::default();
        let options = Options {
            limit: number("limit", limit)?,
            largest_cache: number("largest_cache", largest_cache)?.unwrap_or(usual.largest_cache),
            growth: Growth {
                first_slab: number("first_slab", first_slab)?.unwrap_or(usual.growth.first_slab),
                largest_slab: number("largest_slab", largest_slab)?
                    .unwrap_or(usual.growth.largest_slab),
                ..usual.growth
            },
        };
        let binding = binding_or_default(py, queue, "queue")?;
        let (context, device) = (
            binding.context_device().context(),
            binding.context_device().device(),
        );
        let provider = if suspendable {
            LevelZeroProvider::suspendable(context, device)
        } else {
            LevelZeroProvider::new(context, device, kind)
        };
        Ok(Self {
            binding,
            pool: Pool::new(provider, options),
            callback: Some(Arc::default()),
        })
    }

    /// Sets the failure callback: a function that is called with the number of bytes before an allocation fails, or None. If
    /// it returns True, the allocation is retried, and the function is called again if that fails, too, up to 16 times in a row
    /// without a new minimum of the pool's bytes in use. If it raises an exception, the allocation fails with that as its cause. It may use the pool. The pool keeps it alive until it is replaced.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("shared", limit=1 << 20)
    /// >>> hoard = [pool.malloc(1 << 20)]
    /// >>> pool.set_failure_callback(lambda nbytes: bool(hoard) and hoard.pop() is not None)
    /// >>> memory = pool.malloc(1 << 20)
    /// >>> hoard
    /// []
    #[pyo3(signature = (callback))]
    fn set_failure_callback(&self, callback: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(callback) = callback else {
            self.pool.clear_failure_callback();
            self.__clear__();
            return Ok(());
        };
        if !callback.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "callback must be callable or None, not {}",
                class_name(&callback)
            )));
        }
        let callback = callback.unbind();
        let Some(own) = &self.callback else {
            self.pool
                .set_failure_callback(move |failure| called(&callback, failure.size));
            return Ok(());
        };
        let before = own.lock().replace(callback);
        // Outside the lock, as the drop may run arbitrary code.
        drop(before);
        // A weak reference suffices, as allocations from the pool go through this object.
        let known = Arc::downgrade(own);
        self.pool.set_failure_callback(move |failure| {
            let own = known.upgrade();
            let callback =
                own.and_then(|own| attach(|py| Some(own.lock().as_ref()?.clone_ref(py))));
            callback.map_or(Ok(false), |callback| called(&callback, failure.size))
        });
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self
            .callback
            .as_ref()
            .and_then(|own| own.try_lock())
            .as_deref()
        {
            Some(Some(callback)) => visit.call(callback),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        let callback = self.callback.as_ref().and_then(|own| own.lock().take());
        // Outside the lock, as it may run arbitrary code.
        drop(callback);
    }

    fn __repr__(&self) -> String {
        let statistics = self.pool.statistics();
        format!(
            "<zeusm pool of USM-{} memory: {} bytes in use of {} held{}>",
            self.kind(),
            statistics.used_bytes,
            statistics.total_bytes,
            match self.pool.provider().is_suspended() {
                true => ", suspended",
                false => "",
            }
        )
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let figures = self.pool.statistics();
        let size = |bytes: usize| format!("{}", Bytes(bytes as u64));
        let cells = [
            ("Kind", format!("{}", self.kind())),
            ("In use", size(figures.used_bytes)),
            ("Peak", size(figures.peak_bytes)),
            ("Held", size(figures.total_bytes)),
            (
                "Limit",
                figures.limit.map_or_else(|| "none".to_owned(), size),
            ),
            ("Allocations", format!("{}", figures.allocations)),
            ("Failures", format!("{}", figures.failures)),
            (
                "Device",
                format!("{}", self.binding.context_device().device()),
            ),
        ];
        table(py, "zeusm pool", &cells, "")
    }
}

methods! {
    PyMemoryPool,
    ">>> import zeusm.memory as zm\n\
     >>> pool = zm.MemoryPool(\"shared\")\n\
     >>> memory = pool.malloc(1000)";

    /// Kind of the memory: 'shared', 'device' or 'host'.
    "pool.usm_type" => "'shared'"
    #[getter]
    fn usm_type(&self) -> &'static str {
        self.kind().name()
    }

    /// Bytes of the blocks in use, rounded up to the pool's block sizes.
    "pool.used_bytes()" => "1024"
    fn used_bytes(&self) -> usize {
        self.pool.statistics().used_bytes
    }

    /// Bytes held from Level Zero that are in no block in use.
    "pool.free_bytes() == pool.total_bytes() - pool.used_bytes()" => "True"
    fn free_bytes(&self) -> usize {
        self.pool.statistics().free_bytes
    }

    /// Bytes held from Level Zero, in use or not.
    "pool.total_bytes() >= 1024" => "True"
    fn total_bytes(&self) -> usize {
        self.pool.statistics().total_bytes
    }

    /// The current statistics.
    "pool.statistics().requested_bytes" => "1000"
    fn statistics(&self) -> PyPoolStatistics {
        self.pool.statistics().into()
    }

    /// Resets the peak to the bytes in use.
    "del memory\n\
     >>> pool.reset_peak()\n\
     >>> pool.statistics().peak_bytes" => "0"
    fn reset_peak(&self) {
        self.pool.reset_peak();
    }

    /// A context manager that counts the allocations within a `with` block.
    "with pool.scope() as scope:\n\
     ...     more = pool.malloc(100)\n\
     >>> scope.report().used_count" => "1"
    fn scope(&self) -> PyPoolScope {
        PyPoolScope::new(&self.pool)
    }

    /// Frees unused memory until at most `keep` bytes are held; returns the number of bytes freed.
    "del memory\n\
     >>> pool.trim(0) > 0, pool.total_bytes()" => "(True, 0)"
    #[pyo3(signature = (keep=None))]
    fn trim(&self, py: Python<'_>, keep: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let keep = number("keep", keep)?.unwrap_or(0);
        let _scope = stacks::scope(py);
        Ok(detach(py, || self.pool.trim(keep)))
    }

    /// Frees all unused memory; returns the number of bytes freed.
    "del memory\n\
     >>> pool.free_all_blocks() > 0, pool.total_bytes()" => "(True, 0)"
    fn free_all_blocks(&self, py: Python<'_>) -> usize {
        let _scope = stacks::scope(py);
        detach(py, || self.pool.free_all_blocks())
    }

    /// The maximum number of bytes that the pool holds, in use or not; None for no limit.
    "pool.get_limit() is None" => "True"
    fn get_limit(&self) -> Option<usize> {
        self.pool.statistics().limit
    }

    /// Sets the maximum number of bytes that the pool holds, None for no limit. If more bytes are in use, the pool cannot
    /// grow until enough of them are freed.
    "pool.set_limit(1 << 30)\n\
     >>> pool.get_limit() == 1 << 30" => "True"
    #[pyo3(signature = (size=None))]
    fn set_limit(&self, py: Python<'_>, size: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let limit = number("size", size)?;
        let _scope = stacks::scope(py);
        detach(py, || self.pool.set_limit(limit));
        Ok(())
    }
}

/// Calls the failure callback, which may wait for operations and then expects their operands to be released, also if the
/// allocation is a part of a submission.
fn called(callback: &Py<PyAny>, size: usize) -> Result<bool, Error> {
    with_drops(|| attach(|py| callback.bind(py).call1((size,))?.is_truthy()))
        .map_err(|error| Error::Callback(Box::new(error)))
}

/// The default pool, which allocations without the keyword `pool` use.
///
/// Parameters
/// ----------
/// usm_type : str
///     'device', 'shared' or 'host'.
/// queue : optional
///     The context and the device, as for `MemoryUSMShared`.
///
/// Returns
/// -------
/// MemoryPool
///     A handle of the pool; all handles have the same statistics, limit and callback.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> zm.get_pool("device").usm_type
/// 'device'
#[pyfunction]
#[pyo3(signature = (usm_type="device", queue=None))]
pub(crate) fn get_pool(
    py: Python<'_>,
    usm_type: &str,
    queue: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyMemoryPool> {
    let kind = usm_kind(usm_type)?;
    let binding = binding_or_default(py, queue, "queue")?;
    let pool = binding.context_device().pool(kind)?;
    Ok(PyMemoryPool {
        binding,
        pool,
        callback: None,
    })
}
