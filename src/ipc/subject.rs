//! What handles name.

use level_zero_sys as sys;

use crate::usm::UsmKind;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Memory(UsmKind),
    Event,
}

impl Subject {
    const ALL: [Self; 4] = [
        Self::Memory(UsmKind::Host),
        Self::Memory(UsmKind::Device),
        Self::Memory(UsmKind::Shared),
        Self::Event,
    ];

    /// Its number in serialised handles.
    pub fn number(self) -> u8 {
        match self {
            Self::Memory(UsmKind::Host) => 1,
            Self::Memory(UsmKind::Device) => 2,
            Self::Memory(UsmKind::Shared) => 3,
            Self::Event => 4,
        }
    }

    /// The subject with that number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }

    /// The flag of drivers that support it.
    pub fn flag(self) -> u32 {
        match self {
            Self::Memory(_) => sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0,
            Self::Event => sys::ZE_IPC_PROPERTY_FLAG_EVENT_POOL.0,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Event => "events",
        }
    }
}
