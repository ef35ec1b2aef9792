//! What Windows needs at the initialisation.

use crate::system::library;

/// Worker threads run the library's code, so it must not be unloaded.
pub fn begin() {
    library::keep_loaded(begin as fn() as usize);
}
