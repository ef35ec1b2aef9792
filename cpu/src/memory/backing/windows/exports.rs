//! Memory that other processes may map: there is none.

use std::fs::File;

use zeusm_process::{AtFork, ForkLock};

use super::error::ShareError;
use crate::abi::result::ZeResult;
use crate::memory::backing::pages::Pages;
use crate::memory::backing::record::Record;

/// The types of external memory that can be exported and imported.
pub const TYPES: u32 = 0;

/// How another process finds exported memory.
#[derive(Clone, Copy, Debug)]
pub enum Export {}

/// Whether the pages of an owner are in a file.
#[derive(Debug, Default)]
pub struct InFiles(());

impl InFiles {
    /// # Errors
    /// The result code of [`ShareError::report`], always.
    pub fn export(&self, _: Pages<'_>, _: &Record) -> ZeResult<Export> {
        Err(ShareError.report())
    }

    /// New pages are in no file.
    pub fn begin(&self, _: Pages<'_>) -> bool {
        false
    }

    /// The pages were in no file.
    pub fn end(&self, _: usize) -> bool {
        false
    }
}

/// Whether it is a file of this process's memory.
pub fn has(_: &File) -> bool {
    false
}

/// What a fork would hold.
pub fn at_fork() -> &'static dyn AtFork {
    static NOTHING: ForkLock<()> = ForkLock::new(());
    &NOTHING
}
