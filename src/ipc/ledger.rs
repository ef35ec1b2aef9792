//! All that this process exports, in a file that other processes may read: whoever opens a handle sees there whether the
//! memory is still its owner's, whatever the driver, and also when only a part of the driver's allocation was freed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::Resource;
use rustix::rand::GetRandomFlags;

use super::seal::Key;
use super::{Error, identity};
use crate::process::{Local, Mutex, MutexGuard};

/// The exports of one process.
pub struct Ledger {
    /// A secret of the process: whoever knows it was given a handle.
    pub token: [u8; 16],
    /// What its handles are sealed with.
    pub key: Key,
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
    /// The place in the file, in numbers of eight bytes behind its head.
    pub place: u32,
    /// The number that stands there for as long as the memory is the owner's; never 0.
    pub number: u64,
}

/// What the file begins with, before the key.
const MAGIC: [u8; 8] = *b"zeusmLED";
/// Bytes before the first number.
const HEAD: usize = MAGIC.len() + Key::LENGTH;
/// The file only grows. No file of a file system has this seal, so one that has it was made as a memory file.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::SEAL);

static LEDGER: Local<Mutex<Option<Ledger>>> = Local::new();

/// The ledger of this process, if there is one; a forked child has no part in its parent's.
pub fn get() -> MutexGuard<'static, Option<Ledger>> {
    LEDGER.get_or_default().lock()
}

/// Enters an export, and tells what to seal its handles with; `descriptor` is the driver's.
///
/// # Errors
/// [`Error::System`] with the step that failed; the next export tries again.
pub fn enter(descriptor: Option<RawFd>) -> Result<(Entry, Key), Error> {
    let mut guard = get();
    let ledger = match &mut *guard {
        Some(ledger) => ledger,
        none => none.insert(Ledger::new()?),
    };
    Ok((ledger.enter(descriptor)?, ledger.key))
}

/// Strikes an export out; after this, its descriptor is given to nobody.
pub fn leave(entry: &Entry) {
    if let Some(ledger) = &mut *get()
        && ledger.token == entry.token
        && let Some((place, _)) = ledger.live.remove(&entry.number)
    {
        // The place exists, so this cannot fail.
        let _ = ledger.file.write_all_at(&[0; 8], offset(place));
        ledger.free.push(place);
    }
}

impl Ledger {
    fn new() -> Result<Self, Error> {
        let step = |what| move |cause| Error::System { what, cause };
        let secrets = || io::Result::Ok((random()?, Key(random()?)));
        let (token, key) = secrets().map_err(step("cannot make a secret (getrandom)"))?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("zeusm-ipc", flags)
            .map(File::from)
            .map_err(io::Error::from)
            .map_err(step(
                "cannot make the list of what this process exports (memfd_create)",
            ))?;
        let head = [&MAGIC[..], &key.0].concat();
        write(&file, &head, 0)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)
            .map_err(io::Error::from)
            .map_err(step(
                "cannot seal the list of what this process exports (fcntl)",
            ))?;
        Ok(Self {
            token,
            key,
            file,
            live: HashMap::new(),
            free: Vec::new(),
            places: 0,
        })
    }

    fn enter(&mut self, descriptor: Option<RawFd>) -> Result<Entry, Error> {
        let number = random().map_err(|cause| Error::System {
            what: "cannot number an export (getrandom)",
            cause,
        })?;
        let number = u64::from_ne_bytes(number) | 1;
        let place = self.free.last().copied().unwrap_or(self.places);
        write(&self.file, &number.to_ne_bytes(), offset(place))?;
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

/// Another process's ledger.
pub struct Foreign {
    file: File,
    /// What that process seals its handles with.
    pub key: Key,
    /// The user that made it.
    pub maker: u32,
}

impl Foreign {
    /// The ledger that `file` is; `None` for any other file. Only the process that made a ledger, and those that may look
    /// into it, can have a descriptor of it.
    pub fn read(file: OwnedFd) -> Option<Self> {
        let sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        let file = File::from(file);
        let mut head = [0; HEAD];
        if !sealed || file.read_exact_at(&mut head, 0).is_err() || head[..MAGIC.len()] != MAGIC {
            return None;
        }
        let key = Key(head[MAGIC.len()..].try_into().ok()?);
        let maker = file.metadata().ok()?.uid();
        Some(Self { file, key, maker })
    }

    /// Whether the memory is still its owner's.
    pub fn is_live(&self, entry: &Entry) -> bool {
        let mut number = [0; 8];
        let read = self.file.read_exact_at(&mut number, offset(entry.place));
        read.is_ok() && u64::from_ne_bytes(number) == entry.number
    }
}

/// Where in the file a place is.
fn offset(place: u32) -> u64 {
    HEAD as u64 + u64::from(place) * 8
}

/// Writes, unless the process may have no file as long as that: the kernel would end it with a signal (SIGXFSZ).
fn write(file: &File, bytes: &[u8], at: u64) -> Result<(), Error> {
    let longest = rustix::process::getrlimit(Resource::Fsize).current;
    let end = at + bytes.len() as u64;
    let written = if longest.is_some_and(|longest| longest < end) {
        Err(rustix::io::Errno::FBIG.into())
    } else {
        file.write_all_at(bytes, at)
    };
    let what = "cannot write the list of what this process exports";
    written.map_err(|cause| Error::System { what, cause })
}

/// Bytes that no other process can guess.
fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Requests of up to 256 bytes are answered whole (Linux, getrandom(2)).
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()))?;
    Ok(bytes)
}
