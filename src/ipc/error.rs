//! What can go wrong between processes.

/// Why memory cannot be exported, or a handle not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are no handle.
    #[error("these {length} bytes are no IPC handle of zeusm: {reason}")]
    Malformed {
        /// How many bytes there are.
        length: usize,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// The handle was made by another version of zeusm.
    #[error(
        "the IPC handle is of version {found}, and this zeusm reads version {known}: use one zeusm on both sides"
    )]
    Version {
        /// The handle's version.
        found: u32,
        /// The version that is read here.
        known: u32,
    },
    /// The handle was made on another machine, or before this one was started.
    #[error(
        "the IPC handle was made on another machine, or before this one was restarted (boot {theirs}, here {ours}): \
         memory cannot be shared between machines"
    )]
    AnotherMachine {
        /// The boot id of the machine that made it.
        theirs: String,
        /// The boot id of this one.
        ours: String,
    },
    /// The memory is on another device than the one it is to be opened on.
    #[error("the IPC handle's memory is on device {theirs}, not on {name} ({ours})")]
    AnotherDevice {
        /// The UUID of the device that the memory is on.
        theirs: String,
        /// The UUID of the device named at opening.
        ours: String,
        /// The name of the latter.
        name: String,
    },
    /// The owner has freed the memory.
    #[error("the memory of the IPC handle has been freed by its owner, process {process}")]
    Freed {
        /// The process that owned it.
        process: u32,
    },
    /// The process that owned the memory has ended.
    #[error("process {process}, which owned the memory of the IPC handle, is gone")]
    ExporterGone {
        /// The process.
        process: u32,
    },
    /// The system lets nothing through from the process that owns the memory.
    #[error(
        "cannot get the memory's file descriptor from process {process}: pidfd_getfd: {forbidden}; and over its socket: \
         {socket}"
    )]
    Unreachable {
        /// The process.
        process: u32,
        /// Why `pidfd_getfd` did not give it.
        forbidden: std::io::Error,
        /// Why the socket did not.
        socket: std::io::Error,
    },
    /// The range is not inside the allocation.
    #[error("bytes {start} to {end} are not inside the allocation of {size} bytes")]
    Range {
        /// First byte.
        start: usize,
        /// End.
        end: usize,
        /// The allocation's size in bytes.
        size: usize,
    },
    /// Nothing can be shared: there are no bytes, or the memory is itself another process's.
    #[error("{reason}")]
    NothingToShare {
        /// Why.
        reason: &'static str,
    },
    /// The driver does not pass memory between processes.
    #[error("the Level Zero driver of {device} does not pass memory between processes")]
    Unsupported {
        /// The device's name.
        device: String,
    },
    /// Something of the system was refused.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        cause: std::io::Error,
    },
    /// Level Zero refused.
    #[error(transparent)]
    LevelZero(#[from] crate::Error),
}
