//! The statistics of a pool, as Python objects.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::getters::getters;
use crate::shown;
use zeusm::pool::{Pool, Report, Scope, Statistics};
use zeusm::usm::LevelZeroProvider;
use zeusm_process::Mutex;

/// Defines a class of figures, with a getter and an item in `repr` for each figure.
macro_rules! figures {
    (
        $(#[$documentation:meta])*
        $class:ident, $name:literal, $from:ident, $first:literal,
        { $($(#[$about:meta])* $example:literal => $result:literal $field:ident: $type:ty,)* }
    ) => {
        $(#[$documentation])*
        #[pyclass(name = $name, module = "zeusm.memory", frozen, eq)]
        #[derive(PartialEq)]
        pub(crate) struct $class($from);

        getters! {
            $class, $first;
            $($(#[$about])* $example => $result fn $field(&self) -> $type { self.0.$field })*
        }

        #[pymethods]
        impl $class {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let figures = [$(
                    format!("{}={}", stringify!($field), shown::text(&slf.getattr(stringify!($field))?)?),
                )*];
                Ok(format!("{}({})", $name, figures.join(", ")))
            }
        }

        impl From<$from> for $class {
            fn from(figures: $from) -> Self {
                Self(figures)
            }
        }
    };
}

figures! {
    /// A snapshot of a pool's statistics. All figures but the peak are exact if no allocation is in progress. The peak is
    /// exact as long as one thread uses the pool, and at most 512 KiB too low for every shard (at most 16) otherwise.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("shared")
    /// >>> pool.statistics() == zm.MemoryPool("shared").statistics()
    /// True
    PyPoolStatistics, "PoolStatistics", Statistics,
    ">>> import zeusm.memory as zm\n\
     >>> pool = zm.MemoryPool(\"shared\", limit=1 << 30)\n\
     >>> memory = pool.malloc(1000)\n\
     >>> figures = pool.statistics()",
    {
        /// Bytes of the blocks in use, rounded up to the pool's block sizes.
        "figures.used_bytes" => "1024"
        used_bytes: usize,
        /// Requested bytes of the blocks in use.
        "figures.requested_bytes" => "1000"
        requested_bytes: usize,
        /// Blocks in use.
        "figures.used_count" => "1"
        used_count: usize,
        /// The peak of `used_bytes` since the pool was made, or since the last `reset_peak`.
        "figures.peak_bytes" => "1024"
        peak_bytes: usize,
        /// Bytes held from Level Zero, in use or not.
        "figures.total_bytes >= 1024" => "True"
        total_bytes: usize,
        /// Bytes held from Level Zero that are in no block in use.
        "figures.free_bytes == figures.total_bytes - figures.used_bytes" => "True"
        free_bytes: usize,
        /// The limit on `total_bytes`; None for no limit.
        "figures.limit" => "1073741824"
        limit: Option<usize>,
        /// Allocations so far.
        "figures.allocations" => "1"
        allocations: u64,
        /// Bytes of all allocations so far.
        "figures.allocated_bytes" => "1024"
        allocated_bytes: u64,
        /// Allocations that needed no call of Level Zero.
        "figures.hits" => "0"
        hits: u64,
        /// Allocations that needed a call of Level Zero.
        "figures.misses" => "1"
        misses: u64,
        /// Allocations that failed.
        "figures.failures" => "0"
        failures: u64,
    }
}

figures! {
    /// The changes of a pool's statistics within a scope.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("shared")
    /// >>> with pool.scope() as scope:
    /// ...     memory = pool.malloc(1000)
    /// >>> scope.report()
    /// PoolReport(used_bytes=1024, used_count=1, peak_bytes=1024, allocations=1, allocated_bytes=1024, hits=0, misses=1, failures=0)
    PyPoolReport, "PoolReport", Report,
    ">>> import zeusm.memory as zm\n\
     >>> pool = zm.MemoryPool(\"shared\")\n\
     >>> with pool.scope() as scope:\n\
     ...     memory = pool.malloc(1000)\n\
     >>> report = scope.report()",
    {
        /// Bytes of allocated blocks minus bytes of freed blocks.
        "report.used_bytes" => "1024"
        used_bytes: i64,
        /// Allocated blocks minus freed blocks.
        "report.used_count" => "1"
        used_count: i64,
        /// The peak of `used_bytes` within the scope.
        "report.peak_bytes" => "1024"
        peak_bytes: i64,
        /// Allocations.
        "report.allocations" => "1"
        allocations: u64,
        /// Bytes of all these allocations.
        "report.allocated_bytes" => "1024"
        allocated_bytes: u64,
        /// Allocations that needed no call of Level Zero.
        "report.hits" => "0"
        hits: u64,
        /// Allocations that needed a call of Level Zero.
        "report.misses" => "1"
        misses: u64,
        /// Allocations that failed.
        "report.failures" => "0"
        failures: u64,
    }
}

/// Counts the allocations of a pool within a `with` block.
///
/// Examples
/// --------
/// >>> import zeusm.memory as zm
/// >>> pool = zm.MemoryPool("shared")
/// >>> with pool.scope() as scope:
/// ...     memory = pool.malloc(1000)
/// >>> scope.report().allocations
/// 1
#[pyclass(name = "PoolScope", module = "zeusm.memory", frozen)]
pub(crate) struct PyPoolScope {
    pool: Pool<LevelZeroProvider>,
    state: Mutex<State>,
}

enum State {
    Before,
    Within(Scope<LevelZeroProvider>),
    After(Report),
}

impl PyPoolScope {
    pub(super) fn new(pool: &Pool<LevelZeroProvider>) -> Self {
        Self {
            pool: pool.clone(),
            state: Mutex::new(State::Before),
        }
    }
}

#[pymethods]
impl PyPoolScope {
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let scope = slf.get();
        let mut state = scope.state.lock();
        if !matches!(*state, State::Before) {
            return Err(PyRuntimeError::new_err("a scope can be entered once only"));
        }
        *state = State::Within(scope.pool.scope());
        drop(state);
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        let mut state = self.state.lock();
        if let State::Within(scope) = &*state {
            *state = State::After(scope.report());
        }
    }

    /// The report: inside the `with` block on the changes so far, after it on the whole block.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     Before the `with` block.
    ///
    /// Examples
    /// --------
    /// >>> import zeusm.memory as zm
    /// >>> pool = zm.MemoryPool("shared")
    /// >>> with pool.scope() as scope:
    /// ...     memory = pool.malloc(100)
    /// >>> scope.report().allocations
    /// 1
    fn report(&self) -> PyResult<PyPoolReport> {
        match &*self.state.lock() {
            State::Before => Err(PyRuntimeError::new_err("the scope was not entered yet")),
            State::Within(scope) => Ok(scope.report().into()),
            State::After(report) => Ok((*report).into()),
        }
    }
}
