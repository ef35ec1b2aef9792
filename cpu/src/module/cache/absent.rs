//! No built modules on disk.

use zeusm_process::variables::InvalidVariable;

use crate::abi::entry::Bytes;
use crate::abi::result::ZeResult;
use crate::compiler::Job;
use crate::driver::Driver;

/// The place of one module's code: there is none.
pub enum Entry {}

impl Entry {
    /// `None`.
    pub fn of(_: &Job) -> Option<Self> {
        None
    }

    /// The code.
    pub fn read(&self) -> Option<Vec<u8>> {
        match *self {}
    }

    /// Keeps the code.
    pub fn write(&self, _: &[u8]) {
        match *self {}
    }
}

/// `zeusmDriverDescribeModuleCache`.
pub fn describe(_: Driver, place: Bytes<'_>) -> ZeResult {
    place.write_text("none: modules are kept on Linux only")
}

/// The cache's variables are not read.
///
/// # Errors
/// None.
pub fn read_settings() -> Result<(), InvalidVariable> {
    Ok(())
}
