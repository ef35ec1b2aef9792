//! The source of an allocation: the keyword `pool`.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::PyMemoryPool;
use crate::errors::OrRaise;
use crate::interpreter::detach;
use crate::resolve::{ContextDevice, QueueBinding};
use crate::shown::class_name;
use crate::stacks;
use zeusm::pool::Pool;
use zeusm::usm::{Allocation, LevelZeroProvider, UsmKind};

/// The source of an allocation.
pub(crate) enum AllocationSource<'a> {
    /// The context's default pool, unless the default pools are disabled.
    Default,
    /// Level Zero, without a pool.
    Direct,
    /// A pool that the user passed.
    Pool(&'a Pool<LevelZeroProvider>),
}

impl<'a> AllocationSource<'a> {
    /// Reads the keyword; for a pool, also its queue binding.
    ///
    /// # Errors
    /// `TypeError` for other objects than a `MemoryPool` or a bool; `ValueError` for a pool of another kind.
    pub(crate) fn read(
        pool: Option<&'a Bound<'_, PyAny>>,
        kind: UsmKind,
    ) -> PyResult<(Self, Option<&'a Arc<QueueBinding>>)> {
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
                class_name(pool)
            )));
        };
        let pool = pool.get();
        if pool.kind() != kind {
            return Err(PyValueError::new_err(format!(
                "pool is one of USM-{} memory, not of USM-{kind}",
                pool.kind()
            )));
        }
        Ok((Self::Pool(&pool.pool), Some(&pool.binding)))
    }

    /// Allocates if the pool has a cached block.
    ///
    /// # Errors
    /// `ValueError` for another context or device than the pool's.
    #[inline(always)]
    pub(crate) fn cached(
        &self,
        py: Python<'_>,
        context_device: &ContextDevice,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> PyResult<Option<Allocation>> {
        let (context, device) = (context_device.context(), context_device.device());
        let _scope = stacks::scope(py);
        Ok(match self {
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
        })
    }

    /// Allocates. The GIL is released.
    ///
    /// # Errors
    /// `USMAllocationError` when the allocation fails.
    #[cold]
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
        detach(py, || match self {
            Self::Default => Allocation::new(context, device, kind, size, alignment),
            Self::Direct => Allocation::direct(context, device, kind, size, alignment),
            Self::Pool(pool) => Allocation::in_pool(pool, size, alignment),
        })
        .or_raise()
    }
}
