//! Tests of the engine.

#[cfg(loom)]
mod models;
mod simulation;
