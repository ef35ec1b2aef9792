//! Built modules on disk, for later processes of the same user.

mod entry;
mod folder;
mod settings;

pub use entry::{Entry, describe};
pub use settings::read as read_settings;
