//! Windows.

pub mod environment;
pub mod futex;
pub mod library;
pub mod machine;
pub mod path;
pub mod signals;
pub mod thread;
pub mod time;
