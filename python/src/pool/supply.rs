//! Where an allocation's memory comes from: the keyword `pool`.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::PyMemoryPool;
use crate::spot::Spot;
use zeusm::Error;
use zeusm::pool::Pool;
use zeusm::usm::{Allocation, LevelZero, UsmKind};

/// Where an allocation's memory comes from.
pub(crate) enum Supply {
    /// The context's pool, where pools are on.
    Usual,
    /// Level Zero.
    Direct,
    /// A pool that the user made or asked for.
    Pool(Pool<LevelZero>),
}

impl Supply {
    /// Reads the keyword, and where the pool is if it is one.
    ///
    /// # Errors
    /// `TypeError` for what is neither a `MemoryPool` nor a bool; `ValueError` for a pool of another kind.
    pub(crate) fn read(
        pool: Option<&Bound<'_, PyAny>>,
        kind: UsmKind,
    ) -> PyResult<(Self, Option<Arc<Spot>>)> {
        let Some(pool) = pool else {
            return Ok((Self::Usual, None));
        };
        if let Ok(on) = pool.cast::<PyBool>() {
            let supply = if on.is_true() {
                Self::Usual
            } else {
                Self::Direct
            };
            return Ok((supply, None));
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
            Some(Arc::clone(pool.spot())),
        ))
    }

    /// Allocates at `spot`, which must be in the pool's context if there is a pool. The GIL is held on to only while
    /// nothing has to be waited for.
    pub(crate) fn allocate(
        &self,
        py: Python<'_>,
        spot: &Spot,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Allocation, Error> {
        let (context, device) = (spot.place().context(), spot.place().device());
        let ready = match self {
            Self::Usual => Allocation::kept(context, device, kind, size, alignment),
            Self::Direct => None,
            Self::Pool(pool) => Allocation::kept_in_pool(pool, size, alignment),
        };
        match ready {
            Some(allocation) => Ok(allocation),
            None => py.detach(|| self.allocate_slowly(spot, kind, size, alignment)),
        }
    }

    fn allocate_slowly(
        &self,
        spot: &Spot,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Allocation, Error> {
        let (context, device) = (spot.place().context(), spot.place().device());
        match self {
            Self::Usual => Allocation::new(context, device, kind, size, alignment),
            Self::Direct => Allocation::direct(context, device, kind, size, alignment),
            Self::Pool(pool) => Allocation::in_pool(pool, size, alignment),
        }
    }

    /// Refuses a place that is not the pool's.
    pub(crate) fn check_place(&self, spot: &Spot) -> PyResult<()> {
        match self {
            Self::Pool(pool)
                if pool.provider().context() != spot.place().context()
                    || pool.provider().device() != spot.place().device() =>
            {
                Err(PyValueError::new_err(
                    "pool and queue are of different contexts or devices",
                ))
            }
            _ => Ok(()),
        }
    }
}
