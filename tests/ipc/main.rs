//! Memory between processes, by handles that are sent as bytes.
#![allow(clippy::unwrap_used)]

#[path = "../support/child.rs"]
mod child;
mod closed;
mod common;
#[path = "../support/contents.rs"]
mod contents;
mod events;
mod forged;
mod sharing;
