//! GPU address spaces (VMs): the mapping of GPU addresses to buffers and user memory.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::budget;
use super::ranges::{Backing, Binding, PageFault, Place, Ranges, find, plain};
use super::user::{read_user, write_user};

/// The size of the bounce buffer for copies from or to user memory, and of a repeated fill pattern.
const BOUNCE: usize = 64 << 10;

/// An address space. Changes of the bindings hold the write lock. Accesses hold the read lock, so that a buffer stays bound
/// during an access.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    ranges: RwLock<Ranges>,
}

/// Declares the store of a number.
macro_rules! stores {
    ($word:ty, $atomic:ty, $bytes:pat, $store:ident) => {
        /// Stores with release semantics.
        pub(crate) fn $store(&self, address: u64, word: $word) -> Result<(), PageFault> {
            let ranges = self.ranges.read();
            match find(&ranges, address, "write", true)? {
                (Place::Buffer(to), $bytes) if to.cast::<$word>().is_aligned() => {
                    // SAFETY: the place has these bytes, aligned, and is bound while the lock is held.
                    unsafe { <$atomic>::from_ptr(to.cast()) }.store(word, Ordering::Release);
                    Ok(())
                }
                _ => write_to(&ranges, address, &word.to_le_bytes()),
            }
        }
    };
}

impl AddressSpace {
    /// Binds memory, which the GPU only reads unless it is writable.
    pub(crate) fn bind(&self, address: u64, length: u64, backing: Backing, writable: bool) {
        let (address, range) = range(address, length);
        let binding = Binding {
            address,
            backing,
            writable,
        };
        self.ranges.write().insert(range, binding);
    }

    pub(crate) fn unbind(&self, address: u64, length: u64) {
        let (_, range) = range(address, length);
        self.ranges.write().remove(range);
    }

    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), PageFault> {
        read_from(&self.ranges.read(), address, bytes)
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), PageFault> {
        write_to(&self.ranges.read(), address, bytes)
    }

    /// Copies in chunks that are contiguous in both ranges. A chunk between buffers is copied with `memmove`.
    pub(crate) fn copy(&self, to: u64, from: u64, length: u64) -> Result<(), PageFault> {
        let length = budget::take(length);
        let mut done = 0;
        while done < length {
            let (target, source) = (to + done, from + done);
            let ranges = self.ranges.read();
            let (destination, space) = find(&ranges, target, "copy to", true)?;
            let (origin, found) = find(&ranges, source, "copy from", false)?;
            let piece = (length - done).min(space).min(found);
            if let (Place::Buffer(to), Place::Buffer(from)) = (destination, origin) {
                // SAFETY: both places have that many bytes, and their buffers are bound while the lock is held.
                unsafe { ptr::copy(from, to, piece as usize) };
                done += piece;
                continue;
            }
            drop(ranges);
            let mut block = vec![0; (piece as usize).min(BOUNCE)];
            self.read(source, &mut block)?;
            self.write(target, &block)?;
            done += block.len() as u64;
        }
        Ok(())
    }

    /// Fills with a repeated pattern; the last repetition may be truncated.
    pub(crate) fn fill(&self, to: u64, pattern: &[u8], length: u64) -> Result<(), PageFault> {
        let length = budget::take(length);
        let repeat = (BOUNCE / pattern.len()).max(1).min(length as usize);
        let block = pattern.repeat(repeat);
        let mut done = 0;
        while done < length {
            let piece = (length - done).min(block.len() as u64);
            self.write(to + done, &block[..piece as usize])?;
            done += piece;
        }
        Ok(())
    }

    /// Loads a dword that the program or another engine may write concurrently. The load has acquire semantics.
    pub(crate) fn load(&self, address: u64) -> Result<u32, PageFault> {
        let ranges = self.ranges.read();
        match find(&ranges, address, "read", false)? {
            (Place::Buffer(from), 4..) if from.cast::<u32>().is_aligned() => {
                // SAFETY: the place has four bytes, aligned, and is bound while the lock is held.
                Ok(unsafe { AtomicU32::from_ptr(from.cast()) }.load(Ordering::Acquire))
            }
            _ => {
                let mut word = [0; 4];
                read_from(&ranges, address, &mut word)?;
                Ok(u32::from_le_bytes(word))
            }
        }
    }

    stores!(u32, AtomicU32, 4.., store);
    stores!(u64, AtomicU64, 8.., store_wide);
}

/// An address that is not in canonical form, and the range from there on.
fn range(address: u64, length: u64) -> (u64, Range<u64>) {
    let address = plain(address);
    (address, address..address.saturating_add(length))
}

/// Resolves a range in contiguous parts. `run` gets the place of each with its bytes in the range, and returns `false` if
/// user memory is not mapped.
fn each_place(
    ranges: &Ranges,
    address: u64,
    length: usize,
    writes: bool,
    mut run: impl FnMut(Place, Range<usize>) -> bool,
) -> Result<(), PageFault> {
    let access = if writes { "write" } else { "read" };
    let mut done = 0;
    while done < length {
        let address = address + done as u64;
        let (place, contiguous) = find(ranges, address, access, writes)?;
        let end = length.min(done.saturating_add(contiguous as usize));
        if !run(place, done..end) {
            return Err(PageFault { address, access });
        }
        done = end;
    }
    Ok(())
}

/// Reads bytes. The caller holds the lock on `ranges`, so that buffers stay bound; a second read lock on the same thread would
/// block behind a waiting writer.
fn read_from(ranges: &Ranges, address: u64, bytes: &mut [u8]) -> Result<(), PageFault> {
    each_place(ranges, address, bytes.len(), false, |place, part| {
        let part = &mut bytes[part];
        match place {
            // SAFETY: the place has that many bytes, and its buffer is bound while the lock is held.
            Place::Buffer(from) => unsafe {
                ptr::copy_nonoverlapping(from, part.as_mut_ptr(), part.len());
            },
            Place::User(from) => return read_user(from, part),
            Place::Null => part.fill(0),
        }
        true
    })
}

/// Writes bytes, under the caller's lock as in [`read_from`].
fn write_to(ranges: &Ranges, address: u64, bytes: &[u8]) -> Result<(), PageFault> {
    each_place(ranges, address, bytes.len(), true, |place, part| {
        let part = &bytes[part];
        match place {
            // SAFETY: the place has that many bytes, and its buffer is bound while the lock is held.
            Place::Buffer(to) => unsafe {
                ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            },
            Place::User(to) => return write_user(to, part),
            Place::Null => {}
        }
        true
    })
}

#[cfg(test)]
mod tests;
