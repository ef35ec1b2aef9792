//! Calling a function of the program.

use std::ffi::c_void;

use crate::abi::result::ZeResult;
use crate::engine::{Kind, Operation};

type Function = unsafe extern "C" fn(*mut c_void);

/// A call of a function with the program's data.
pub struct HostFunction {
    function: Function,
    /// An address, which is only passed on.
    data: usize,
}

impl HostFunction {
    /// A call of `function` with `data`.
    ///
    /// # Safety
    /// `function` may be called with `data` from any thread, as often as the operation is executed.
    pub unsafe fn new(function: Function, data: *mut c_void) -> Self {
        let data = data as usize;
        Self { function, data }
    }
}

impl Operation for HostFunction {
    /// A worker calls it, since the program may hold a lock in the append that its function takes.
    fn kind(&self) -> Kind {
        Kind::Long
    }

    fn run(&self, _part: usize) -> ZeResult {
        // SAFETY: who made it vouched for the function and the data.
        unsafe { (self.function)(self.data as *mut c_void) };
        Ok(())
    }
}
