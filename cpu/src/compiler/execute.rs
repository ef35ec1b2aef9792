//! What the compiler does.

use super::message::{Failure, Outcome, Task};
use crate::opencl::{Program, Runtime, translate};

/// Does a task in this process.
///
/// # Errors
/// See [`Failure`].
pub fn execute(task: &Task) -> Outcome {
    let runtime = Runtime::get().map_err(Failure::Unavailable)?;
    match task {
        Task::Build(job) => {
            let program = Program::compile(runtime, job).map_err(Failure::Refused)?;
            let binary = program.binary();
            binary.map_err(|error| Failure::Refused(error.to_string()))
        }
        Task::Translate(source, options) => {
            translate(runtime, source, options).map_err(Failure::Refused)
        }
    }
}
