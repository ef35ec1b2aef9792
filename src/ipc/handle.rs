//! The handle, and its bytes.

use std::ops::Range;

use super::driver::Raw;
use super::identity::{self, uuid};
use super::ledger::Entry;
use super::mapping::Mapping;
use super::{Error, fetch};
use crate::context::Context;
use crate::device::Device;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// Names a range of an allocation to other processes of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    /// The machine, by its boot id.
    pub(super) boot: [u8; 16],
    pub(super) device: [u8; 16],
    pub(super) process: u32,
    pub(super) kind: UsmKind,
    pub(super) entry: Entry,
    pub(super) raw: Raw,
    /// What the descriptor in `raw` names, if the driver uses one.
    pub(super) file: Option<identity::File>,
    /// Level Zero's id of the allocation in the exporting process.
    pub(super) id: u64,
    /// Bytes of the driver's allocation.
    pub(super) whole: u64,
    /// Where in it the range begins, and its length.
    pub(super) offset: u64,
    pub(super) size: u64,
}

const MAGIC: [u8; 8] = *b"zeusmIPC";
const VERSION: u32 = 1;

impl IpcHandle {
    /// How many bytes a handle has.
    pub const LENGTH: usize = 216;

    /// Makes a handle of a range of an allocation, in bytes from its beginning. The memory stays the allocation's: the
    /// handle opens for as long as that lives.
    ///
    /// # Errors
    /// [`Error::Range`] and [`Error::NothingToShare`], [`Error::Unsupported`] by the driver's word, and Level Zero's and
    /// the system's own errors.
    pub fn new(allocation: &Allocation, range: Range<usize>) -> Result<Self, Error> {
        if range.start > range.end || range.end > allocation.size() {
            return Err(Error::Range {
                start: range.start,
                end: range.end,
                size: allocation.size(),
            });
        }
        if range.is_empty() {
            let reason = "no bytes, so nothing to share with another process";
            return Err(Error::NothingToShare { reason });
        }
        allocation.export()?.handle(allocation, &range)
    }

    /// Makes a handle of a range of a typed owner's memory, which gives no slices from then on.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_memory<K: Kind>(memory: &mut Memory<K>, range: Range<usize>) -> Result<Self, Error> {
        Self::new(memory.exclusive_allocation(), range)
    }

    /// Opens the memory on `device` in `context`; a second time for as long as the first mapping lives, that one.
    ///
    /// # Errors
    /// [`Error::AnotherMachine`], [`Error::AnotherDevice`], [`Error::ExporterGone`], [`Error::Freed`],
    /// [`Error::Unreachable`], and [`Error::LevelZero`] with the driver's answer.
    pub fn open(&self, context: &Context, device: &Device) -> Result<Mapping, Error> {
        let here = identity::boot()?;
        if self.boot != here {
            return Err(Error::AnotherMachine {
                theirs: uuid(self.boot),
                ours: uuid(here),
            });
        }
        if self.device != device.uuid() {
            return Err(Error::AnotherDevice {
                theirs: uuid(self.device),
                ours: uuid(device.uuid()),
                name: device.name().to_owned(),
            });
        }
        let descriptor = fetch::descriptor(self)?;
        Mapping::new(self, context, device, descriptor)
    }

    /// Length of the range in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Where the range begins in the driver's allocation, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.kind
    }

    /// Level Zero's id of the allocation in the exporting process.
    #[must_use]
    pub fn allocation_id(&self) -> u64 {
        self.id
    }

    /// The UUID of the device that the memory is on.
    #[must_use]
    pub fn device_uuid(&self) -> [u8; 16] {
        self.device
    }

    /// The process that owns the memory.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The handle as bytes, for any way to another process of the machine. They hold a secret of this process: whoever
    /// has them, and is the same user, can open the memory.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let file = self.file.unwrap_or_default();
        let mut writer = Writer(Vec::with_capacity(Self::LENGTH));
        writer.put(MAGIC);
        writer.put(VERSION.to_le_bytes());
        writer.put(self.process.to_le_bytes());
        writer.put(self.boot);
        writer.put(self.device);
        writer.put([kind_number(self.kind), u8::from(self.file.is_some()), 0, 0]);
        writer.put(self.entry.place.to_le_bytes());
        writer.put(self.entry.token);
        writer.put(self.entry.number.to_le_bytes());
        writer.put(self.entry.file.device.to_le_bytes());
        writer.put(self.entry.file.inode.to_le_bytes());
        writer.put(self.entry.descriptor.to_le_bytes());
        writer.put(file.device.to_le_bytes());
        writer.put(file.inode.to_le_bytes());
        writer.put(self.raw.0);
        writer.put(self.id.to_le_bytes());
        writer.put(self.whole.to_le_bytes());
        writer.put(self.offset.to_le_bytes());
        writer.put(self.size.to_le_bytes());
        let check = crc32fast::hash(&writer.0);
        writer.put(check.to_le_bytes());
        writer.0
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Version`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = |reason| Error::Malformed {
            length: bytes.len(),
            reason,
        };
        let mut reader = Reader(bytes);
        let cut = || malformed("they are too few");
        if reader.take::<8>().ok_or_else(cut)? != MAGIC {
            return Err(malformed("they begin with something else"));
        }
        let version = reader.number().ok_or_else(cut)?;
        if version != VERSION {
            return Err(Error::Version {
                found: version,
                known: VERSION,
            });
        }
        if bytes.len() != Self::LENGTH {
            return Err(malformed("a handle has more or fewer"));
        }
        let (content, check) = bytes.split_at(Self::LENGTH - 4);
        if crc32fast::hash(content).to_le_bytes() != check {
            return Err(malformed("they were damaged on the way"));
        }
        let handle = Self::fields(&mut reader).ok_or_else(cut)?;
        let end = handle.offset.checked_add(handle.size);
        if handle.size == 0 || end.is_none_or(|end| end > handle.whole) {
            return Err(malformed("the range is not inside the allocation"));
        }
        Ok(handle)
    }

    /// What follows the version.
    fn fields(reader: &mut Reader<'_>) -> Option<Self> {
        let process = reader.number()?;
        let (boot, device) = (reader.take()?, reader.take()?);
        let [kind, has_file, _, _] = reader.take()?;
        let place = reader.number()?;
        let entry = Entry {
            token: reader.take()?,
            number: reader.long()?,
            file: reader.file()?,
            descriptor: reader.number()?.cast_signed(),
            place,
        };
        let file = reader.file()?;
        Some(Self {
            boot,
            device,
            process,
            kind: kind_of(kind)?,
            entry,
            raw: Raw(reader.take()?),
            file: (has_file != 0).then_some(file),
            id: reader.long()?,
            whole: reader.long()?,
            offset: reader.long()?,
            size: reader.long()?,
        })
    }
}

fn kind_number(kind: UsmKind) -> u8 {
    match kind {
        UsmKind::Host => 1,
        UsmKind::Device => 2,
        UsmKind::Shared => 3,
    }
}

fn kind_of(number: u8) -> Option<UsmKind> {
    [UsmKind::Host, UsmKind::Device, UsmKind::Shared]
        .into_iter()
        .find(|kind| kind_number(*kind) == number)
}

struct Writer(Vec<u8>);

impl Writer {
    fn put<const LENGTH: usize>(&mut self, bytes: [u8; LENGTH]) {
        self.0.extend_from_slice(&bytes);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn file(&mut self) -> Option<identity::File> {
        Some(identity::File {
            device: self.long()?,
            inode: self.long()?,
        })
    }
}
