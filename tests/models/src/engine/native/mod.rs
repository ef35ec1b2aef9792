//! Replaces the engine's room of this name.

#[path = "../../../../../cpu/src/engine/native/wait.rs"]
pub mod wait;
