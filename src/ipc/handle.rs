//! The handle, its serialisation, and its authentication: it has a tag that only the exporting process can compute.

use siphasher::sip128::SipHasher24;

use super::Error;
use super::driver::{DriverHandle, Subject};
use crate::usm::UsmKind;

/// Identifies a range of an allocation to other processes of the machine; in an [`IpcEventHandle`](super::IpcEventHandle), an
/// event, without a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    /// The machine's boot id.
    pub(super) boot: [u8; 16],
    pub(super) device: [u8; 16],
    pub(super) process: u32,
    pub(super) subject: Subject,
    /// Names the exporting process's socket.
    pub(super) token: [u8; 16],
    /// The random id of the export there.
    pub(super) export: u64,
    pub(super) driver_handle: DriverHandle,
    /// Level Zero's id of the allocation in the exporting process.
    pub(super) allocation_id: u64,
    /// The size of the driver's allocation in bytes.
    pub(super) allocation_size: u64,
    /// The range within the driver's allocation.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The exporting process's authentication tag over all fields above. No field is trusted before the tag is verified.
    pub(super) tag: Tag,
}

/// Identifies an allocation of another process: that process's token, the driver's id of the allocation there, and the
/// driver's handle without its descriptor. Allocations in a pool of Intel's driver share an id and a file; their handles have
/// different offsets.
pub(super) type AllocationKey = ([u8; 16], u64, [u8; 60]);

const MAGIC: [u8; 8] = *b"zeusmIPC";
const VERSION: u32 = 3;
/// The length of the tag and the checksum, with which a handle ends.
const TRAILER: usize = size_of::<Tag>() + 4;

impl IpcHandle {
    /// The length of a serialised handle in bytes.
    pub const LENGTH: usize = 192;

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
        match self.subject {
            Subject::Memory(kind) => kind,
            // That of the event's state.
            Subject::Event => UsmKind::Host,
        }
    }

    /// Level Zero's id of the allocation in the exporting process.
    #[must_use]
    pub fn allocation_id(&self) -> u64 {
        self.allocation_id
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

    /// The serialised handle, to be sent to another process of the machine by any means. The bytes contain a secret of this
    /// process: any process of the same user that has them can open the memory.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = self.content();
        writer.put(self.tag);
        let check = crc32fast::hash(&writer.0);
        writer.put(check.to_le_bytes());
        writer.0
    }

    pub(super) fn allocation_key(&self) -> AllocationKey {
        let place = self.driver_handle.without_descriptor();
        (self.token, self.allocation_id, place)
    }

    /// The handle with its authentication tag.
    pub(super) fn authenticated(self, key: &Key) -> Self {
        let tag = key.tag(&self.content().0);
        Self { tag, ..self }
    }

    /// Whether the process with this key made the handle with this content.
    pub(super) fn is_authenticated_by(&self, key: &Key) -> bool {
        key.verify(&self.content().0, &self.tag)
    }

    /// The authenticated bytes.
    fn content(&self) -> Writer {
        let mut writer = Writer(Vec::with_capacity(Self::LENGTH));
        writer.put(MAGIC);
        writer.put(VERSION.to_le_bytes());
        writer.put(self.process.to_le_bytes());
        writer.put(self.boot);
        writer.put(self.device);
        writer.put([self.subject.number(), 0, 0, 0]);
        writer.put(self.token);
        writer.put(self.export.to_le_bytes());
        writer.put(self.driver_handle.0);
        writer.put(self.allocation_id.to_le_bytes());
        writer.put(self.allocation_size.to_le_bytes());
        writer.put(self.offset.to_le_bytes());
        writer.put(self.size.to_le_bytes());
        debug_assert_eq!(writer.0.len(), Self::LENGTH - TRAILER);
        writer
    }

    /// Parses the bytes of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Version`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let handle = Self::parse(bytes)?;
        match handle.subject {
            Subject::Memory(_) => Ok(handle),
            Subject::Event => Err(Error::Malformed {
                length: bytes.len(),
                reason: "they are the handle of an event, not of memory",
            }),
        }
    }

    /// Parses the bytes of a handle of memory or of an event.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = |reason| Error::Malformed {
            length: bytes.len(),
            reason,
        };
        let mut reader = Reader(bytes);
        let too_few = || malformed("they are too few");
        if reader.take::<8>().ok_or_else(too_few)? != MAGIC {
            return Err(malformed("they begin with something else"));
        }
        let version = reader.u32().ok_or_else(too_few)?;
        if version != VERSION {
            return Err(Error::Version {
                found: version,
                known: VERSION,
            });
        }
        if bytes.len() != Self::LENGTH {
            return Err(malformed("a handle has 192"));
        }
        let (content, check) = bytes.split_at(Self::LENGTH - 4);
        if crc32fast::hash(content).to_le_bytes() != check {
            return Err(malformed("they are damaged: the checksum is wrong"));
        }
        let handle = Self::fields(&mut reader)
            .filter(|handle| handle.process.cast_signed() > 0)
            .ok_or_else(|| malformed("a field has an invalid value"))?;
        let end = handle.offset.checked_add(handle.size);
        let is_empty = handle.size == 0 && handle.subject != Subject::Event;
        if is_empty || end.is_none_or(|end| end > handle.allocation_size) {
            return Err(malformed("the range is not inside the allocation"));
        }
        Ok(handle)
    }

    /// The fields after the version.
    fn fields(reader: &mut Reader<'_>) -> Option<Self> {
        let process = reader.u32()?;
        let (boot, device) = (reader.take()?, reader.take()?);
        let [subject, 0, 0, 0] = reader.take()? else {
            return None;
        };
        Some(Self {
            boot,
            device,
            process,
            subject: Subject::of(subject)?,
            token: reader.take()?,
            export: reader.u64()?,
            driver_handle: DriverHandle(reader.take()?),
            allocation_id: reader.u64()?,
            allocation_size: reader.u64()?,
            offset: reader.u64()?,
            size: reader.u64()?,
            tag: reader.take()?,
        })
    }
}

/// The secret key of a process, which never leaves it: other processes have it verify handles.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; Key::LENGTH]);

/// A keyed hash of a handle's other bytes: SipHash-2-4 with 128 bits, which is designed to authenticate short messages.
pub type Tag = [u8; 16];

impl Key {
    /// The length in bytes.
    pub const LENGTH: usize = 16;

    /// The tag of `content`.
    pub fn tag(&self, content: &[u8]) -> Tag {
        SipHasher24::new_with_key(&self.0).hash(content).as_bytes()
    }

    /// Whether `tag` is that of `content`, in constant time.
    pub fn verify(&self, content: &[u8], tag: &Tag) -> bool {
        let expected = self.tag(content);
        let differences = expected.iter().zip(tag).map(|(one, other)| one ^ other);
        differences.fold(0, |all, one| all | one) == 0
    }
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

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
