//! Signals: Windows sends none to threads.

/// Leaves the process's signals to the application's threads.
pub fn leave_to_application() {}

/// Calls `load`, which may load and initialise a library.
pub fn preserved<T>(load: impl FnOnce() -> T) -> T {
    load()
}
