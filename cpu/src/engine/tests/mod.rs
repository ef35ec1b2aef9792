//! Tests of the engine.

#[cfg(loom)]
mod models;
mod native;
mod simulation;
mod slots;
mod workers;

/// Longer than any thread needs, however busy the machine is.
const LONG: std::time::Duration = std::time::Duration::from_secs(60);
