//! Building modules in the calling process, which a corrupt module may crash: the process of Linux's compiler needs sockets and
//! forks. No limit of time holds.

mod execute;
mod limit;
mod message;

use execute::execute;
pub use limit::read_limit;
pub use message::{Failure, Job};
use message::{Outcome, Task};

/// Builds a module to the device's own code.
///
/// # Errors
/// See [`Failure`].
pub fn compile(job: &Job, _what: &str, _is_right_without_optimisation: bool) -> Outcome {
    execute(&Task::Build(job.clone()))
}
