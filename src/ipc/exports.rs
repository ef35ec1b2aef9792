//! The exports of this process. Each is of an allocation of zeusm's, of which several may be in one allocation of the driver's.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use rustix::rand::GetRandomFlags;
use zeusm_process::{Local, Mutex};

use super::Error;
use super::authentication::Key;
use super::exported::Exported;
use super::handle::IpcHandle;

/// A random number that identifies the process, in handles and in the name of its socket.
pub type Token = [u8; 16];

struct Exports {
    token: Token,
    /// The key of the handles' authentication tags.
    key: Key,
    /// By the exports' random ids.
    live: HashMap<u64, Arc<Exported>>,
    /// By the first address of the driver's allocation.
    by_base: HashMap<usize, Weak<Exported>>,
}

/// The status of the export that a handle names.
pub enum Status {
    /// This process did not make the handle, or not with this content.
    Forged,
    /// The memory has been freed, or the program has closed its descriptor.
    Freed,
    /// The export is live.
    Live(Arc<Exported>),
}

/// Empty in a fork's child, which has exports of its own.
static EXPORTS: Local<Mutex<Option<Exports>>> = Local::new();

/// This process's token.
///
/// # Errors
/// [`Error::System`] when the system has no random numbers.
pub fn token() -> Result<Token, Error> {
    with(|exports| Ok(exports.token))
}

/// Whether this process made the handle, if it is authentic.
pub fn is_own(handle: &IpcHandle) -> bool {
    let exports = EXPORTS.get_or_default().lock();
    exports.as_ref().is_some_and(|it| it.token == handle.token)
}

/// Adds an export that is, or is a part of, the driver's allocation at `base`, which `make` exports unless it is. Returns its id.
///
/// # Errors
/// Those of `make`, and [`Error::System`] when the system has no random numbers.
pub fn insert(base: usize, make: impl FnOnce() -> Result<Exported, Error>) -> Result<u64, Error> {
    let shared = with(|exports| Ok(exports.by_base.get(&base).and_then(Weak::upgrade)))?;
    let made = match shared {
        Some(shared) => shared,
        None => Arc::new(make()?),
    };
    with(|exports| {
        // Another thread may have made one meanwhile.
        let shared = exports.by_base.get(&base).and_then(Weak::upgrade);
        let shared = shared.unwrap_or_else(|| Arc::clone(&made));
        let id = u64::from_ne_bytes(random()?);
        exports.by_base.insert(base, Arc::downgrade(&shared));
        exports.live.insert(id, shared);
        Ok(id)
    })
}

/// Removes an export; its descriptor is not passed to other processes after this.
pub fn remove(id: u64) {
    let mut exports = EXPORTS.get_or_default().lock();
    let removed = exports.as_mut().and_then(|exports| {
        let removed = exports.live.remove(&id)?;
        if Arc::strong_count(&removed) == 1 {
            exports.by_base.remove(&removed.memory.base);
        }
        Some(removed)
    });
    // Outside the lock, as the drop calls the driver.
    drop(exports);
    drop(removed);
}

/// A handle that `make` makes of an export of this process, authenticated; `None` when the program has closed its descriptor.
pub fn handle(id: u64, make: impl FnOnce(Token, &Exported) -> IpcHandle) -> Option<IpcHandle> {
    let exports = EXPORTS.get_or_default().lock();
    let exports = exports.as_ref()?;
    let exported = exports.live.get(&id)?;
    exported.descriptor()?;
    Some(make(exports.token, exported).authenticated(&exports.key))
}

/// The status of the export that a handle names.
pub fn find(handle: &IpcHandle) -> Status {
    let exports = EXPORTS.get_or_default().lock();
    let own = exports.as_ref().filter(|it| it.token == handle.token);
    let Some(own) = own.filter(|it| handle.is_authenticated_by(&it.key)) else {
        return Status::Forged;
    };
    let found = own.live.get(&handle.export);
    let open = found.filter(|exported| exported.descriptor().is_some());
    open.map_or(Status::Freed, |exported| Status::Live(Arc::clone(exported)))
}

fn with<T>(use_it: impl FnOnce(&mut Exports) -> io::Result<T>) -> Result<T, Error> {
    let mut exports = EXPORTS.get_or_default().lock();
    let there = match &mut *exports {
        Some(there) => Ok(there),
        none => Exports::new().map(|new| none.insert(new)),
    };
    there.and_then(use_it).map_err(|cause| Error::System {
        what: "cannot make a secret (getrandom)",
        cause,
    })
}

impl Exports {
    fn new() -> io::Result<Self> {
        Ok(Self {
            token: random()?,
            key: Key(random()?),
            live: HashMap::new(),
            by_base: HashMap::new(),
        })
    }
}

/// Random bytes that no other process can guess.
fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Requests of up to 256 bytes are not interrupted (Linux, getrandom(2)).
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()))?;
    Ok(bytes)
}
