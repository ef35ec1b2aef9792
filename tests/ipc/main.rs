//! Memory between processes, through handles that travel as bytes.
#![allow(clippy::unwrap_used)]

mod common;
mod forged;
mod sharing;
