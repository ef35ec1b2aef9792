//! The errors of memory and events between processes.

use std::io;

use rustix::io::Errno;
use zeusm_process::memory::Bound;

/// Why memory or an event cannot be exported, or a handle cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a handle.
    #[error("these {length} bytes are not an IPC handle of zeusm: {reason}")]
    Malformed {
        /// The number of bytes.
        length: usize,
        /// The reason.
        reason: &'static str,
    },
    /// The handle was made by another version of zeusm.
    #[error(
        "the IPC handle is of version {found}, and this zeusm reads version {known}: use one zeusm on both sides"
    )]
    Version {
        /// The handle's version.
        found: u32,
        /// The version that this process supports.
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
    /// The handle is of another device than the one to open it on.
    #[error(
        "the IPC handle is of device {theirs}, not of {name} ({ours}): open it with its own device"
    )]
    AnotherDevice {
        /// The UUID of the device that the memory or the event is of.
        theirs: String,
        /// The UUID of the device to open it on.
        ours: String,
        /// The name of that device.
        name: String,
    },
    /// The process did not make the handle, or not with this content.
    #[error(
        "the IPC handle was not made by process {0}, or was changed since: its authentication tag is wrong"
    )]
    Forged(u32),
    /// The process that made the handle belongs to another user, which is not trusted.
    #[error(
        "the IPC handle belongs to process {process} of user {user}: only those of the same user's and of root's processes can \
         be opened"
    )]
    Untrusted {
        /// The process that the handle names.
        process: u32,
        /// Its effective user.
        user: u32,
    },
    /// The owner has freed the memory, or closed its descriptors, as daemons close all.
    #[error(
        "what the IPC handle names has been freed by its owner, process {0}, or that process has closed the file descriptors \
         of it"
    )]
    Freed(u32),
    /// No process listens at the socket that the handle names.
    #[error(
        "process {0}, which made the IPC handle, is gone: no process listens at its socket (or it is in a \
         container with another network namespace, or has closed all its descriptors, as daemons do)"
    )]
    ExporterGone(u32),
    /// The process that owns the memory does not answer.
    #[error(
        "cannot get the file descriptor for the IPC handle from process {process} over its socket: {cause}"
    )]
    Unreachable {
        /// The process.
        process: u32,
        /// The error of the socket.
        cause: io::Error,
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
    /// The handler of a signal ran during the wait for the answer of the owner, which may be stopped or busy: the call can be
    /// repeated.
    #[error("a signal has interrupted the wait for an answer of process {0}")]
    Interrupted(u32),
    /// There is nothing to share: no bytes, or memory that was itself opened from another process.
    #[error("{0}")]
    NothingToShare(&'static str),
    /// The program has closed the descriptors of the exported memory, as daemons close all, so no process can open it any more.
    #[error(
        "the program has closed the file descriptors of this memory since it was exported, as os.closerange does: no process \
         can open it any more; export a new allocation of its own (pool=False)"
    )]
    Closed,
    /// The driver migrates shared memory, so that another process would have other bytes than the host.
    #[error(
        "shared memory of {0} cannot be shared between processes: the driver migrates it between host and device, and \
         other processes have the device's bytes only; use device or host memory"
    )]
    Migrates(String),
    /// This process's memory on a machine with several GPUs: Intel's driver then does not recognise the buffer as its own,
    /// and closes it together with the mapping.
    #[error(
        "memory of this process cannot be opened on {0}: on a machine with several GPUs, Intel's driver would lose the \
         memory's buffer when the mapping is closed; use the memory itself, or open it in another process"
    )]
    OwnMemory(String),
    /// The driver does not support IPC of memory, or of events.
    #[error("the Level Zero driver of {device} does not support {what} between processes{}", in_parentheses(.description))]
    Unsupported {
        /// What it does not support.
        what: &'static str,
        /// The device's name.
        device: String,
        /// The driver's description of its last error, if it has one.
        description: String,
    },
    /// The driver did not export or open the memory; a retry may succeed.
    #[error("{cause}{}{}", in_parentheses(.description), bound(.cause))]
    Refused {
        /// The driver's result.
        cause: crate::error::Error,
        /// The driver's description of its last error, if it has one.
        description: String,
    },
    /// A system call failed; a retry may succeed.
    #[error("{what}: {cause}{}{}", advice(.cause), Bound::behind(.cause))]
    System {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// Level Zero returned an error.
    #[error(transparent)]
    LevelZero(#[from] crate::error::Error),
}

impl Error {
    /// Whether file descriptors are short, of which the driver has some for exported memory until that is freed.
    pub(super) fn is_short_of_descriptors(&self) -> bool {
        match self {
            Self::System { cause, .. } => matches!(
                Errno::from_io_error(cause),
                Some(Errno::MFILE | Errno::NFILE)
            ),
            _ => false,
        }
    }
}

fn in_parentheses(description: &str) -> String {
    match description {
        "" => String::new(),
        text => format!(" ({text})"),
    }
}

/// What limits memory, where Level Zero is out of it.
fn bound(error: &crate::error::Error) -> String {
    let bound = error.is_out_of_memory().then(Bound::least).flatten();
    bound.map_or_else(String::new, |bound| format!(": {bound}"))
}

/// The possible reason for a system error, and the remedy.
fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => {
            ": the process has reached its limit of open files (RLIMIT_NOFILE, `ulimit -n`)"
        }
        Some(Errno::NFILE) => ": the machine has reached its limit of open files (fs.file-max)",
        Some(Errno::FBIG) => {
            ": shared memory counts as a file, and is larger than the process's limit (RLIMIT_FSIZE, `ulimit -f`)"
        }
        Some(Errno::PERM | Errno::NOSYS) => {
            ": the kernel lacks the system call, or a filter (seccomp) forbids it"
        }
        Some(Errno::NOENT) => ": is /proc mounted?",
        _ => "",
    }
}
