//! Blocking copies and fills. The GIL is released during the submission and the execution, unless the operation is small.
//!
//! Each function takes owners of its operands, and returns them when the operation is complete. If a signal, Ctrl-C for
//! instance, interrupts the wait, the operands are retained until the operation is complete.

mod blocking;
mod blocks;
mod submit;

pub(crate) use blocking::{Side, copy, fill, order};
pub(crate) use blocks::{StridedCopy, copy_strided};
pub(crate) use submit::{pointer, range, submit_copy};
