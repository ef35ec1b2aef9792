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
    /// Whether it follows all of them.
    pub fn follows_all(self) -> bool {
        matches!(self, Self::AfterEarlier | Self::Barrier)
    }

    /// Whether all later commands follow it.
    pub fn holds_later(self) -> bool {
        matches!(self, Self::BeforeLater | Self::Barrier)
    }
}
