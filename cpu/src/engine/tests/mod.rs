//! Tests of the engine.

mod simulation;
