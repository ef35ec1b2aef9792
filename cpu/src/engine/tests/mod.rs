//! Tests of the engine.

#[cfg(loom)]
mod models;
mod native;
mod simulation;
mod slots;
mod workers;
