//! The export table: a file with the exports of this process that other processes may read. A process that opens a handle
//! reads there whether the export is live. This does not depend on the driver, and also works for memory that is a part of
//! the driver's allocation.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::Resource;
use rustix::rand::GetRandomFlags;
use zeusm_process::{FileId, Local, Mutex, MutexGuard, OwnDescriptor};

use super::Error;
use super::authentication::Key;

/// The exports of this process.
pub struct ExportTable {
    /// A random number that identifies the process, in handles and in the name of its socket.
    pub token: [u8; 16],
    /// The key of the handles' authentication tags.
    pub key: Key,
    file: OwnDescriptor<File>,
    /// For each live export, by its id: its index in the file, and the memory's descriptor.
    live: HashMap<u64, (u32, Option<Descriptor>)>,
    free: Vec<u32>,
    length: u32,
    /// Whether it replaced one whose file the program had closed.
    follows_closed: bool,
}

/// The descriptor of exported memory, which the export has, too.
type Descriptor = Arc<OwnDescriptor>;

/// The entry of an export in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The number that identifies the process.
    pub token: [u8; 16],
    /// The table's descriptor in the process.
    pub descriptor: i32,
    /// The table's file.
    pub file: FileId,
    /// The index in the file, in ids of eight bytes after the header.
    pub index: u32,
    /// The random id that the file has at the index while the export is live; never 0.
    pub id: u64,
}

/// The beginning of the file, before the key.
const MAGIC: [u8; 8] = *b"zeusmEXP";
/// Bytes before the first id.
const HEADER: usize = MAGIC.len() + Key::LENGTH;
/// The file cannot shrink. Files of a file system cannot have these seals, so a file with them is a memory file.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::SEAL);

static TABLE: Local<Mutex<Option<ExportTable>>> = Local::new();

/// The table of this process, if it has one. A fork's child does not inherit its parent's.
pub fn lock() -> MutexGuard<'static, Option<ExportTable>> {
    TABLE.get_or_default().lock()
}

/// Adds an export with the memory's descriptor; returns the key to authenticate its handles with.
///
/// # Errors
/// [`Error::System`] with the step that failed; the next export tries again.
pub fn insert(descriptor: Option<Descriptor>) -> Result<(Entry, Key), Error> {
    let mut guard = lock();
    let table = match &mut *guard {
        Some(table) if table.file.get().is_some() => table,
        none => {
            let follows_closed = none.is_some();
            none.insert(ExportTable::new(follows_closed)?)
        }
    };
    Ok((table.insert(descriptor)?, table.key))
}

/// Removes an export; its descriptor is not passed to other processes after this.
pub fn remove(entry: &Entry) {
    if let Some(table) = &mut *lock()
        && table.token == entry.token
        && let Some((index, _)) = table.live.remove(&entry.id)
    {
        if let Some(file) = table.file.get() {
            // The file is long enough, so this cannot fail.
            let _ = file.write_all_at(&[0; 8], offset(index));
        }
        table.free.push(index);
    }
}

/// Whether other processes can open an export: the program has closed neither the table nor the memory's descriptor.
pub fn is_open(entry: &Entry) -> bool {
    lock().as_ref().is_some_and(|table| {
        table.token == entry.token && table.file.get().is_some() && table.find(entry.id).is_some()
    })
}

/// Whether the program has closed the descriptors of exports, as daemons do.
pub fn has_been_closed() -> bool {
    lock().as_ref().is_some_and(|table| {
        table.follows_closed || table.file.get().is_none() || table.has_closed()
    })
}

impl ExportTable {
    fn new(follows_closed: bool) -> Result<Self, Error> {
        let step = |what| move |cause| Error::System { what, cause };
        let secrets = || io::Result::Ok((random()?, Key(random()?)));
        let (token, key) = secrets().map_err(step("cannot make a secret (getrandom)"))?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("zeusm-ipc", flags)
            .map(File::from)
            .map_err(io::Error::from)
            .map_err(step(
                "cannot make the table of this process's exports (memfd_create)",
            ))?;
        let header = [&MAGIC[..], &key.0].concat();
        write(&file, &header, 0)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)
            .map_err(io::Error::from)
            .map_err(step(
                "cannot seal the table of this process's exports (fcntl)",
            ))?;
        Ok(Self {
            token,
            key,
            file: OwnDescriptor::new(file)
                .map_err(step("cannot keep the table of this process's exports"))?,
            live: HashMap::new(),
            free: Vec::new(),
            length: 0,
            follows_closed,
        })
    }

    fn insert(&mut self, descriptor: Option<Descriptor>) -> Result<Entry, Error> {
        let id = random().map_err(|cause| Error::System {
            what: "cannot make the id of an export (getrandom)",
            cause,
        })?;
        let id = u64::from_ne_bytes(id) | 1;
        let index = self.free.last().copied().unwrap_or(self.length);
        let file = self.file.get().ok_or_else(|| Error::System {
            what: "cannot find the table of this process's exports",
            cause: rustix::io::Errno::BADF.into(),
        })?;
        write(file, &id.to_ne_bytes(), offset(index))?;
        if self.free.pop().is_none() {
            self.length += 1;
        }
        self.live.insert(id, (index, descriptor));
        Ok(Entry {
            token: self.token,
            descriptor: self.file.number(),
            file: self.file.file(),
            index,
            id,
        })
    }

    /// Whether the program has closed the descriptor of a live export.
    fn has_closed(&self) -> bool {
        let mut descriptors = self.live.values().filter_map(|(_, it)| it.as_ref());
        descriptors.any(|it| it.get().is_none())
    }

    /// The memory's descriptor of a live export. One whose descriptor the program has closed is live no more.
    pub fn find(&self, id: u64) -> Option<Option<BorrowedFd<'_>>> {
        match &self.live.get(&id)?.1 {
            None => Some(None),
            Some(descriptor) => Some(Some(descriptor.get()?.as_fd())),
        }
    }
}

/// The export table of another process.
pub struct RemoteTable {
    file: File,
    /// The key of that process.
    pub key: Key,
    /// The user that owns the file.
    pub owner: u32,
}

impl RemoteTable {
    /// The table in `file`; `None` for any other file. Only the process that made a table, and processes that may trace
    /// that one, can have a descriptor of it.
    pub fn read(file: OwnedFd) -> Option<Self> {
        let is_sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SEALS));
        let file = File::from(file);
        let mut header = [0; HEADER];
        if !is_sealed
            || file.read_exact_at(&mut header, 0).is_err()
            || header[..MAGIC.len()] != MAGIC
        {
            return None;
        }
        let key = Key(header[MAGIC.len()..].try_into().ok()?);
        let owner = file.metadata().ok()?.uid();
        Some(Self { file, key, owner })
    }

    /// Whether the export is live.
    pub fn is_live(&self, entry: &Entry) -> bool {
        let mut id = [0; 8];
        let read = self.file.read_exact_at(&mut id, offset(entry.index));
        read.is_ok() && u64::from_ne_bytes(id) == entry.id
    }
}

/// The offset of an index in the file.
fn offset(index: u32) -> u64 {
    HEADER as u64 + u64::from(index) * 8
}

/// Writes, unless the file would exceed the process's limit: the kernel would send a signal (SIGXFSZ) then.
fn write(file: &File, bytes: &[u8], at: u64) -> Result<(), Error> {
    let limit = rustix::process::getrlimit(Resource::Fsize).current;
    let end = at + bytes.len() as u64;
    let written = if limit.is_some_and(|limit| limit < end) {
        Err(rustix::io::Errno::FBIG.into())
    } else {
        file.write_all_at(bytes, at)
    };
    let what = "cannot write the table of this process's exports";
    written.map_err(|cause| Error::System { what, cause })
}

/// Random bytes that no other process can guess.
fn random<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Requests of up to 256 bytes are not interrupted (Linux, getrandom(2)).
    rustix::io::retry_on_intr(|| rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()))?;
    Ok(bytes)
}
