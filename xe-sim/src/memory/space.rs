//! GPU address spaces (VMs): the mapping of GPU addresses to buffers and user memory.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::budget;
use super::ranges::{Backing, PageFault, Place, Range, Ranges, atomic_place, cut, find, plain};
use super::user::{read_user, write_user};

/// The size of the bounce buffer for copies from or to user memory, and of a repeated fill pattern.
const BOUNCE: usize = 64 << 10;

/// An address space. Changes of the bindings hold the write lock. Accesses hold the read lock, so that a buffer stays bound
/// during an access.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    ranges: RwLock<Ranges>,
}

/// Declares the store and the atomic update of a number.
macro_rules! atomics {
    ($word:ty, $atomic:ty, $bytes:pat, $store:ident, $update:ident) => {
        /// Stores with release semantics.
        pub(crate) fn $store(&self, address: u64, word: $word) -> Result<(), PageFault> {
            let ranges = self.ranges.read();
            match find(&ranges, address, "write", true)? {
                Place::Buffer(to, $bytes) if to.cast::<$word>().is_aligned() => {
                    // SAFETY: the place has these bytes, aligned, and is bound while the lock is held.
                    unsafe { <$atomic>::from_ptr(to.cast()) }.store(word, Ordering::Release);
                    Ok(())
                }
                _ => write_to(&ranges, address, &word.to_le_bytes()),
            }
        }

        /// Updates atomically.
        pub(crate) fn $update(
            &self,
            address: u64,
            change: impl Fn($word) -> $word,
        ) -> Result<(), PageFault> {
            let ranges = self.ranges.read();
            // SAFETY: `atomic_place` returns aligned memory that is bound while the lock is held.
            let word = unsafe { <$atomic>::from_ptr(atomic_place(&ranges, address)?) };
            let change = |old| Some(change(old));
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
            Ok(())
        }
    };
}

impl AddressSpace {
    /// Binds memory, which the GPU only reads unless it is writable.
    pub(crate) fn bind(&self, address: u64, length: u64, backing: Backing, writable: bool) {
        let range = Range {
            length,
            backing,
            writable,
        };
        let mut ranges = self.ranges.write();
        let dropped = cut(&mut ranges, plain(address), length);
        ranges.insert(plain(address), range);
        drop(ranges);
        drop(dropped);
    }

    pub(crate) fn unbind(&self, address: u64, length: u64) {
        let dropped = cut(&mut self.ranges.write(), plain(address), length);
        drop(dropped);
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
            let destination = find(&ranges, target, "copy to", true)?;
            let origin = find(&ranges, source, "copy from", false)?;
            let piece = (length - done)
                .min(destination.length())
                .min(origin.length());
            if let (Place::Buffer(to, _), Place::Buffer(from, _)) = (&destination, &origin) {
                // SAFETY: both places have that many bytes, and their buffers are bound while the lock is held.
                unsafe { ptr::copy(*from, *to, piece as usize) };
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
            Place::Buffer(from, 4..) if from.cast::<u32>().is_aligned() => {
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

    atomics!(u32, AtomicU32, 4.., store, update);
    atomics!(u64, AtomicU64, 8.., store_wide, update_wide);
}

/// Reads bytes. The caller holds the lock on `ranges`, so that buffers stay bound; a second read lock on the same thread would
/// block behind a waiting writer.
fn read_from(ranges: &Ranges, address: u64, bytes: &mut [u8]) -> Result<(), PageFault> {
    let access = "read";
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let place = find(ranges, at, access, false)?;
        let part = &mut bytes[done..];
        let length = part.len().min(place.length() as usize);
        let part = &mut part[..length];
        match place {
            // SAFETY: the place has that many bytes, and its buffer is bound while the lock is held.
            Place::Buffer(from, _) => unsafe {
                ptr::copy_nonoverlapping(from, part.as_mut_ptr(), length);
            },
            Place::User(from, _) if read_user(from, part) => {}
            Place::User(..) => {
                return Err(PageFault {
                    address: at,
                    access,
                });
            }
            Place::Null(_) => part.fill(0),
        }
        done += length;
    }
    Ok(())
}

/// Writes bytes, under the caller's lock as in [`read_from`].
fn write_to(ranges: &Ranges, address: u64, bytes: &[u8]) -> Result<(), PageFault> {
    let access = "write";
    let mut done = 0;
    while done < bytes.len() {
        let at = address + done as u64;
        let place = find(ranges, at, access, true)?;
        let part = &bytes[done..];
        let part = &part[..part.len().min(place.length() as usize)];
        match place {
            // SAFETY: the place has that many bytes, and its buffer is bound while the lock is held.
            Place::Buffer(to, _) => unsafe {
                ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            },
            Place::User(to, _) if write_user(to, part) => {}
            Place::User(..) => {
                return Err(PageFault {
                    address: at,
                    access,
                });
            }
            Place::Null(_) => {}
        }
        done += part.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
