//! The handle, and its bytes.

use super::Error;
use super::driver::Raw;
use super::identity::File;
use super::ledger::Entry;
use super::seal::{Key, Seal};
use crate::usm::UsmKind;

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
    pub(super) file: Option<File>,
    /// Level Zero's id of the allocation in the exporting process.
    pub(super) id: u64,
    /// Bytes of the driver's allocation.
    pub(super) whole: u64,
    /// Where in it the range begins, and its length.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// By the exporting process, over all of the above: nothing in a handle is believed before the seal is found right.
    pub(super) seal: Seal,
}

const MAGIC: [u8; 8] = *b"zeusmIPC";
const VERSION: u32 = 2;
/// Of the seal and the checksum, which end a handle.
const TAIL: usize = size_of::<Seal>() + 4;

impl IpcHandle {
    /// How many bytes a handle has.
    pub const LENGTH: usize = 232;

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
        let mut writer = self.content();
        writer.put(self.seal);
        let check = crc32fast::hash(&writer.0);
        writer.put(check.to_le_bytes());
        writer.0
    }

    /// The handle with its process's seal.
    pub(super) fn sealed(self, key: &Key) -> Self {
        let seal = key.seal(&self.content().0);
        Self { seal, ..self }
    }

    /// Whether the process that `key` is of made the handle as it is.
    pub(super) fn is_sealed_by(&self, key: &Key) -> bool {
        key.fits(&self.content().0, &self.seal)
    }

    /// What is sealed.
    fn content(&self) -> Writer {
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
        debug_assert_eq!(writer.0.len(), Self::LENGTH - TAIL);
        writer
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
        let handle = Self::fields(&mut reader)
            .filter(Self::is_possible)
            .ok_or_else(|| malformed("a field has a value that no handle has"))?;
        let end = handle.offset.checked_add(handle.size);
        if handle.size == 0 || end.is_none_or(|end| end > handle.whole) {
            return Err(malformed("the range is not inside the allocation"));
        }
        Ok(handle)
    }

    /// Whether the process and the descriptors have numbers that the kernel could have given.
    fn is_possible(&self) -> bool {
        let descriptor = self.file.map(|_| self.raw.descriptor());
        self.process.cast_signed() > 0
            && self.entry.descriptor >= 0
            && descriptor.is_none_or(|number| number >= 0)
    }

    /// What follows the version.
    fn fields(reader: &mut Reader<'_>) -> Option<Self> {
        let process = reader.number()?;
        let (boot, device) = (reader.take()?, reader.take()?);
        let [kind, has_file, 0, 0] = reader.take()? else {
            return None;
        };
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
            file: match has_file {
                0 if file == File::default() => None,
                1 => Some(file),
                _ => return None,
            },
            id: reader.long()?,
            whole: reader.long()?,
            offset: reader.long()?,
            size: reader.long()?,
            seal: reader.take()?,
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

    fn file(&mut self) -> Option<File> {
        Some(File {
            device: self.long()?,
            inode: self.long()?,
        })
    }
}
