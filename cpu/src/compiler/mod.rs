//! Building modules in a process of their own.
//!
//! A compiler is millions of lines that trust their input: with a byte of a module changed it may crash, exit or
//! never return, and it would take the caller's process with it. So a second process compiles, and hands back the
//! device's own code, which this process only loads. It is this very library, started as a program (`start`), so
//! there is no second file to install. It stays for the next module and ends when this process does.

mod client;
mod message;
mod server;
mod start;

pub use client::compile;
pub use message::{Failure, Job, Unit, read_blob, write_blob};
