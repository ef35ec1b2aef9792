//! In the place of `fork.rs` on systems without fork, where nothing is registered.

macro_rules! held_at_fork {
    ($lock:ident: $guarded:ty) => {};
}
pub(crate) use held_at_fork;
