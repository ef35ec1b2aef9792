//! The order of commands in a stream.

/// Which earlier commands of the same stream a command follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Only the last barrier.
    Unordered,
    /// All of them.
    AfterEarlier,
    /// Only the last barrier; and all later commands follow it.
    BeforeLater,
    /// All of them; and all later commands follow it.
    Barrier,
}

impl Order {
    /// The order of a command with a wait list. Later commands of its queue or list do not overtake it, as the engine of a GPU
    /// stops at the wait; SYCL's adapter relies on that.
    pub fn with_waits(self) -> Self {
        match self {
            Self::Unordered | Self::BeforeLater => Self::BeforeLater,
            Self::AfterEarlier | Self::Barrier => Self::Barrier,
        }
    }

    /// Whether it follows all of them.
    pub fn follows_all(self) -> bool {
        matches!(self, Self::AfterEarlier | Self::Barrier)
    }

    /// Whether all later commands follow it.
    pub fn holds_later(self) -> bool {
        matches!(self, Self::BeforeLater | Self::Barrier)
    }
}
