//! Replaces the engine's room of this name.

#[path = "../../../../../cpu/src/engine/order/changes.rs"]
pub mod changes;
#[path = "../../../../../cpu/src/engine/order/help.rs"]
mod help;
#[path = "../../../../../cpu/src/engine/order/identity.rs"]
mod identity;
#[path = "../../../../../cpu/src/engine/order/pending.rs"]
mod pending;
pub mod primitives;
#[path = "../../../../../cpu/src/engine/order/signal.rs"]
mod signal;
#[path = "../../../../../cpu/src/engine/order/wait.rs"]
mod wait;

pub use help::{Executor, Help, QueueNumber, Request};
pub use ready::Advance;
pub use signal::Signal;

/// Replaces the dispatch, whose state belongs to threads of the system. The models have no signals that other processes set.
mod ready {
    use super::help::QueueNumber;

    pub trait Advance: Send {
        fn chain(&mut self, queue: QueueNumber) -> bool;
        fn number(&self) -> usize;
    }

    pub type Ready = Box<dyn Advance>;

    pub fn dispatch(_ready: Vec<Ready>) {}
}

/// Replaces the callbacks of the native runtime; the models have none.
mod retired {
    pub fn retire(object: impl Send + 'static) {
        drop(object);
    }

    pub fn retire_or_drop(object: impl Send + 'static) {
        drop(object);
    }

    pub fn release_retired() {}
}

/// Replaces the errors of commands; those of the models have none.
mod fault {
    #[derive(Default)]
    pub struct Fault;

    impl Fault {
        pub fn note(&self, (): ()) {}

        pub fn clear(&self) {}

        pub fn get(&self) -> Result<(), ()> {
            Ok(())
        }
    }

    #[derive(Default)]
    pub struct SharedFault {
        _none: (),
    }

    impl SharedFault {
        pub fn set(&mut self, _noted: &Fault, _before: (bool, u64)) {}

        pub fn get(&self, _count: u64) -> Result<(), ()> {
            Ok(())
        }
    }
}

/// Replaces the native runtime's events; the models have none.
pub trait NativeEvent: Send + Sync {
    fn wait(&self);
}
