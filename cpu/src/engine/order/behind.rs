//! Help with the commands before a held one.

use std::sync::{Arc, Weak};

use super::help::{Executor, Help, Request};
use super::sequence::Sequence;
use crate::system::clock::Deadline;

/// The executor of a command that is held in a sequence, behind all commands before its number.
pub struct Behind {
    sequence: Weak<Sequence>,
    number: u64,
}

impl Behind {
    /// That of command `number`.
    pub fn executor(sequence: &Arc<Sequence>, number: u64) -> Executor {
        let sequence = Arc::downgrade(sequence);
        Executor::Shared(Arc::new(Self { sequence, number }))
    }

    fn before(&self) -> Option<Executor> {
        self.sequence.upgrade()?.executor_before(self.number)
    }
}

impl Help for Behind {
    fn help(&self, deadline: Deadline) -> bool {
        let mut last: Option<Executor> = None;
        while let Some(executor) = self.before()
            && last.as_ref().is_none_or(|last| !last.is(&executor))
            && executor.help(deadline)
        {
            last = Some(executor);
        }
        last.is_some()
    }

    fn request_help(&self) -> Option<Request> {
        self.before()?.request_help()
    }
}
