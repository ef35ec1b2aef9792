//! The source of an allocation: the keyword `pool`.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::PyMemoryPool;
use crate::errors::OrRaise;
use crate::interpreter::detach;
use crate::resolve::{ContextDevice, QueueBinding};
use crate::stacks;
use zeusm::Error;
use zeusm::pool::Pool;
use zeusm::usm::{Allocation, LevelZeroProvider, UsmKind};

/// The source of an allocation.
pub(crate) enum AllocationSource {
    /// The context's default pool, unless the default pools are disabled.
    Default,
    /// Level Zero, without a pool.
    Direct,
    /// A pool that the user passed.
    Pool(Pool<LevelZeroProvider>),
}

impl AllocationSource {
    /// Reads the keyword; for a pool, also its queue binding.
    ///
    /// # Errors
    /// `TypeError` for other objects than a `MemoryPool` or a bool; `ValueError` for a pool of another kind.
    pub(crate) fn read(
        pool: Option<&Bound<'_, PyAny>>,
        kind: UsmKind,
    ) -> PyResult<(Self, Option<Arc<QueueBinding>>)> {
        let Some(pool) = pool else {
            return Ok((Self::Default, None));
        };
        if let Ok(on) = pool.cast::<PyBool>() {
            let source = if on.is_true() {
                Self::Default
            } else {
                Self::Direct
            };
            return Ok((source, None));
        }
        let Ok(pool) = pool.cast::<PyMemoryPool>() else {
            return Err(PyTypeError::new_err(format!(
                "pool must be a MemoryPool or a bool, not {}",
                pool.get_type().name()?
            )));
        };
        let pool = pool.get();
        if pool.kind() != kind {
            return Err(PyValueError::new_err(format!(
                "pool is one of USM-{} memory, not of USM-{kind}",
                pool.kind()
            )));
        }
        Ok((
            Self::Pool(pool.pool().clone()),
            Some(Arc::clone(pool.binding())),
        ))
    }

    /// Allocates. The GIL is released unless the pool has a cached block.
    ///
    /// # Errors
    /// `ValueError` for another context or device than the pool's; `USMAllocationError` when the allocation fails.
    pub(crate) fn allocate(
        &self,
        py: Python<'_>,
        context_device: &ContextDevice,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> PyResult<Allocation> {
        let (context, device) = (context_device.context(), context_device.device());
        let _scope = stacks::scope(py);
        let free = match self {
            Self::Default => Allocation::cached(context, device, kind, size, alignment),
            Self::Direct => None,
            Self::Pool(pool) => {
                let provider = pool.provider();
                if provider.context() != context || provider.device() != device {
                    return Err(PyValueError::new_err(
                        "pool and queue are of different contexts or devices",
                    ));
                }
                Allocation::in_pool_cached(pool, size, alignment)
            }
        };
        match free {
            Some(allocation) => Ok(allocation),
            None => detach(py, || {
                self.allocate_new(context_device, kind, size, alignment)
            })
            .or_raise(),
        }
    }

    fn allocate_new(
        &self,
        context_device: &ContextDevice,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Allocation, Error> {
        let (context, device) = (context_device.context(), context_device.device());
        match self {
            Self::Default => Allocation::new(context, device, kind, size, alignment),
            Self::Direct => Allocation::direct(context, device, kind, size, alignment),
            Self::Pool(pool) => Allocation::in_pool(pool, size, alignment),
        }
    }
}
