//! In the place of `fork.rs` on systems without fork, where nothing is registered.

macro_rules! at_fork {
    ($($handler:expr),*) => {
        const _: &[Option<extern "C" fn()>] = &[$($handler),*];
    };
}
pub(crate) use at_fork;

macro_rules! held_at_fork {
    ($lock:ident: $guarded:ty) => {};
}
pub(crate) use held_at_fork;
