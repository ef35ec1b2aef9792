//! The errors of commands, for those who wait for them.

use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::abi::result::ZeResult;

/// The first error of some commands since it was cleared; 0 is none.
#[derive(Default)]
pub struct Fault(AtomicU32);

impl Fault {
    /// Records an error unless there is one already.
    pub fn note(&self, code: sys::ze_result_t) {
        let _ = self
            .0
            .compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// The error.
    pub fn get(&self) -> ZeResult {
        match self.0.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(sys::ze_result_t(code)),
        }
    }

    /// Forgets the error.
    pub fn clear(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Release);
        }
    }

    /// Reports the error once.
    fn take(&self) -> ZeResult {
        // In most cases there is none, and a load takes less time than an exchange.
        if self.0.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        match self.0.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            code => Err(sys::ze_result_t(code)),
        }
    }
}

/// The first error of the commands of this process that have set a signal which processes share, and how often that had been
/// set by then; a code of 0 is none.
///
/// Another process resets the signal without a word to this one. But a wait succeeds only after it was set again, and so the
/// error is current as long as the count is.
#[derive(Default)]
pub struct SharedFault {
    code: u32,
    count: u64,
}

impl SharedFault {
    /// Takes the error that was `noted` for a command that has just set the signal. `before` tells whether it was set already,
    /// and how often it had been set: if both by this process, an earlier error stays.
    pub fn set(&mut self, noted: &Fault, before: (bool, u64)) {
        let (was_set, count) = before;
        let stays = was_set && self.count == count && self.code != 0;
        let noted = noted.take();
        if !stays {
            self.code = noted.map_or_else(|code| code.0, |()| 0);
        }
        self.count = count + 1;
    }

    /// The error, when the signal has been set `count` times.
    pub fn get(&self, count: u64) -> ZeResult {
        if self.code == 0 || self.count != count {
            return Ok(());
        }
        Err(sys::ze_result_t(self.code))
    }
}

/// The errors of a stream.
#[derive(Default)]
pub struct Faults {
    /// Since the last host synchronization.
    unsynchronized: Fault,
    /// Since that, or since the last command that concludes: a barrier, fence or signal behind all commands before it.
    unconcluded: Fault,
}

impl Faults {
    /// Records the outcome of a command.
    pub fn note(&self, outcome: ZeResult) {
        if let Err(code) = outcome {
            self.unsynchronized.note(code);
            self.unconcluded.note(code);
        }
    }

    /// Reports the error to a command that concludes.
    pub fn conclude(&self) -> ZeResult {
        self.unconcluded.take()
    }

    /// Reports the error to a host synchronization.
    pub fn synchronize(&self) -> ZeResult {
        self.unconcluded.clear();
        self.unsynchronized.take()
    }
}
