//! Images and samplers.

mod bad_input;
mod formats;
mod life;
mod model;
mod programs;
mod samplers;
pub mod support;
