//! What can go wrong between processes.

use std::io;

use rustix::io::Errno;

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
    /// The process did not make the handle, or not as it is.
    #[error(
        "the IPC handle is not one of process {process}, or was changed after that made it: its seal does not fit"
    )]
    Forged {
        /// The process that the handle names.
        process: u32,
    },
    /// The process that made the handle is another user's, whom this process has no reason to believe.
    #[error(
        "the memory of the IPC handle belongs to process {process} of user {user}: memory is opened of processes of \
         the same user and of root only"
    )]
    Untrusted {
        /// The process that the handle names.
        process: u32,
        /// Its effective user.
        user: u32,
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
         {socket}{}",
        deaf(.socket)
    )]
    Unreachable {
        /// The process.
        process: u32,
        /// Why `pidfd_getfd` did not give it.
        forbidden: io::Error,
        /// Why the socket did not.
        socket: io::Error,
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
    #[error("the Level Zero driver of {device} does not pass memory between processes{}", more(.description))]
    Unsupported {
        /// The device's name.
        device: String,
        /// What the driver has to say, if anything.
        description: String,
    },
    /// The driver did not export or open the memory; another time it may.
    #[error("{cause}{}", more(.description))]
    Refused {
        /// Its answer.
        cause: crate::error::Error,
        /// What it has to say, if anything.
        description: String,
    },
    /// The system did not do what it was asked for; another time it may.
    #[error("{what}: {cause}{}", advice(.cause))]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        cause: io::Error,
    },
    /// Level Zero refused.
    #[error(transparent)]
    LevelZero(#[from] crate::error::Error),
}

fn more(description: &str) -> String {
    match description {
        "" => String::new(),
        text => format!(" ({text})"),
    }
}

/// What a socket that nobody listens at means.
fn deaf(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            ": it is gone and its number another process's, or in a container with a network of its own, or it could not \
             begin to listen"
        }
        _ => "",
    }
}

/// What the reason may be, and what helps.
fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            ": the process has as many files open as it may (RLIMIT_NOFILE, `ulimit -n`)"
        }
        Some(Errno::NFILE) => ": the machine has as many files open as it may (fs.file-max)",
        Some(Errno::FBIG) => {
            ": the process may have no files that large (RLIMIT_FSIZE, `ulimit -f`), and what is shared counts as one"
        }
        Some(Errno::PERM | Errno::NOSYS) => {
            ": the kernel does not have it, or a filter of system calls (seccomp) forbids it"
        }
        Some(Errno::NOENT) => ": is /proc mounted?",
        _ => "",
    }
}
