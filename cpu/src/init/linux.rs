//! What Linux needs at the initialisation: the handlers of forks, and the front for libraries that compile OpenCL C.

use crate::{fork, front};

/// Begins.
pub fn begin() {
    fork::register_handlers();
    front::announce();
}
