//! All that this process exports, in a file that other processes may read: whoever opens a handle sees there whether the
//! memory is still its owner's, whatever the driver, and also when only a part of the driver's allocation was freed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use rustix::fs::MemfdFlags;
use rustix::rand::GetRandomFlags;

use super::identity;
use super::server;
use crate::process::{Local, Mutex, MutexGuard};

/// The exports of one process.
pub struct Ledger {
    /// A secret of the process: whoever knows it was given a handle.
    pub token: [u8; 16],
    file: File,
    /// Of each export by its number: its place in the file, and the driver's descriptor.
    live: HashMap<u64, (u32, Option<RawFd>)>,
    free: Vec<u32>,
    places: u32,
}

/// Where an export stands in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The process's secret.
    pub token: [u8; 16],
    /// The ledger's descriptor in the process.
    pub descriptor: i32,
    /// The ledger's file.
    pub file: identity::File,
    /// The place in the file, in numbers of eight bytes.
    pub place: u32,
    /// The number that stands there for as long as the memory is the owner's; never 0.
    pub number: u64,
}

static LEDGER: Local<Mutex<Option<Ledger>>> = Local::new();

/// The ledger of this process, if there is one; a forked child has no part in its parent's.
pub fn get() -> MutexGuard<'static, Option<Ledger>> {
    LEDGER.get_or_default().lock()
}

/// Enters an export; `descriptor` is the driver's.
pub fn enter(descriptor: Option<RawFd>) -> io::Result<Entry> {
    let mut guard = get();
    let ledger = match &mut *guard {
        Some(ledger) => ledger,
        none => {
            let ledger = none.insert(Ledger::new()?);
            // Without a server, handles still open wherever pidfd_getfd is allowed.
            let _ = server::start(ledger.token);
            ledger
        }
    };
    ledger.enter(descriptor)
}

/// Strikes an export out; after this, its descriptor is given to nobody.
pub fn leave(entry: &Entry) {
    if let Some(ledger) = &mut *get()
        && ledger.token == entry.token
        && let Some((place, _)) = ledger.live.remove(&entry.number)
    {
        // The place exists, so this cannot fail.
        let _ = ledger.file.write_all_at(&[0; 8], u64::from(place) * 8);
        ledger.free.push(place);
    }
}

impl Ledger {
    fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("zeusm-ipc", MemfdFlags::CLOEXEC)?;
        Ok(Self {
            token: random()?,
            file: File::from(file),
            live: HashMap::new(),
            free: Vec::new(),
            places: 0,
        })
    }

    fn enter(&mut self, descriptor: Option<RawFd>) -> io::Result<Entry> {
        let number = u64::from_ne_bytes(random()?) | 1;
        let place = self.free.last().copied().unwrap_or(self.places);
        let at = u64::from(place) * 8;
        self.file.write_all_at(&number.to_ne_bytes(), at)?;
        if self.free.pop().is_none() {
            self.places += 1;
        }
        self.live.insert(number, (place, descriptor));
        Ok(Entry {
            token: self.token,
            descriptor: self.file.as_raw_fd(),
            file: identity::File::of(&self.file).unwrap_or_default(),
            place,
            number,
        })
    }

    /// The driver's descriptor of an export that is still live.
    pub fn find(&self, number: u64) -> Option<Option<RawFd>> {
        self.live.get(&number).map(|(_, descriptor)| *descriptor)
    }
}

fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
