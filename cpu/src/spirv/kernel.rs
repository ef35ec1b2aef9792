//! A kernel as its module describes it.

use super::types::Image;

/// The kind of a kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to global or constant memory.
    Pointer,
    /// Memory that each work-group has for itself; the launch gives its size only.
    Local,
    /// A number, a vector or a structure, with its size in bytes if the module determines it.
    Value(Option<usize>),
    /// An image.
    Image(Image),
    /// A sampler.
    Sampler,
    /// A type that this runtime cannot pass.
    Opaque,
}

/// An entry point of the execution model Kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, as `zeKernelCreate` is given it.
    pub name: String,
    /// Its arguments in order.
    pub arguments: Vec<Argument>,
    /// The required work-group size.
    pub required_group_size: Option<[u32; 3]>,
    /// The work-group size hint.
    pub group_size_hint: Option<[u32; 3]>,
    /// The required sub-group size.
    pub required_sub_group_size: Option<u32>,
    /// How many sub-groups a work-group must have.
    pub required_sub_groups: Option<u32>,
    /// Whether the work-items of a group wait for each other, by barriers or group operations.
    pub has_barriers: bool,
}
