//! The library that has the interpreter's functions: the program, or what it is linked to.

use libloading::os::unix::Library;

pub(crate) fn of_the_interpreter() -> Option<Library> {
    Some(Library::this())
}
