//! GPU address spaces (VMs): the mapping of GPU addresses to buffers and user memory.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::budget;
use super::ranges::{
    Backing, PageFault, Place, Range, Ranges, atomic_place, cut, find, find_writable, plain,
};
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
            match find_writable(&ranges, address, "write")? {
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
    pub(crate) fn bind(&self, address: u64, length: u64, backing: Backing) {
        self.insert(address, length, backing, true);
    }

    /// Binds memory that the GPU only reads.
    pub(crate) fn bind_read_only(&self, address: u64, length: u64, backing: Backing) {
        self.insert(address, length, backing, false);
    }

    fn insert(&self, address: u64, length: u64, backing: Backing, writable: bool) {
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
            let destination = find_writable(&ranges, target, "copy to")?;
            let origin = find(&ranges, source, "copy from")?;
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
        match find(&ranges, address, "read")? {
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
        let place = find(ranges, at, access)?;
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
        let place = find_writable(ranges, at, access)?;
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::super::Buffer;
    use super::*;

    fn buffer() -> Arc<Buffer> {
        Arc::new(Buffer::new(1 << 16, None).unwrap())
    }

    #[test]
    fn copies_go_over_bindings_and_into_the_programs_memory() {
        let space = AddressSpace::default();
        let mut own = vec![0u8; 8192];
        space.bind(0x10000, 4096, Backing::Buffer(buffer(), 0));
        space.bind(0x11000, 4096, Backing::Buffer(buffer(), 4096));
        space.bind(0x20000, 8192, Backing::User(own.as_mut_ptr() as u64));
        space.fill(0x10000, &[1, 2, 3], 8192).unwrap();
        space.copy(0x20000, 0xffff_0000_0001_0000, 8192).unwrap();
        assert!(
            own.iter()
                .enumerate()
                .all(|(i, &byte)| usize::from(byte) == i % 3 + 1)
        );
    }

    #[test]
    fn what_is_not_bound_faults() {
        let space = AddressSpace::default();
        space.bind(0x10000, 8192, Backing::Buffer(buffer(), 0));
        space.unbind(0x10800 & !4095, 4096);
        let fault = space.write(0x10000, &[0]).unwrap_err();
        assert_eq!(fault.address, 0x10000);
        space.write(0x11000, &[0]).unwrap();
        assert_eq!(
            space.read(0x11fff, &mut [0; 2]).unwrap_err().address,
            0x12000
        );
        assert_eq!(space.load(0x9000).unwrap_err().access, "read");
    }

    #[test]
    fn writes_to_read_only_bindings_fault() {
        let space = AddressSpace::default();
        space.bind_read_only(0, 0x3000, Backing::Buffer(buffer(), 0));
        space.unbind(0x1000, 0x1000);
        for at in [0, 0x2000] {
            assert_eq!(space.load(at), Ok(0));
            assert_eq!(space.read(at, &mut [0; 9]), Ok(()));
            for end in [
                space.write(at, &[1]),
                space.fill(at, &[1], 9),
                space.copy(at, at + 8, 8),
                space.store(at, 1),
                space.store_wide(at, 1),
                space.update(at, |old| old + 1),
                space.update_wide(at, |old| old + 1),
            ] {
                assert_eq!(end.unwrap_err().address, at);
            }
        }
    }

    #[test]
    fn memory_that_the_program_gave_back_faults() {
        let space = AddressSpace::default();
        space.bind(0x10000, 4096, Backing::User(4096));
        assert!(space.read(0x10000, &mut [0; 4]).is_err());
        assert!(space.write(0x10000, &[0; 4]).is_err());
    }

    #[test]
    fn a_stretch_taken_out_leaves_head_and_tail() {
        let space = AddressSpace::default();
        let buffer = buffer();
        space.bind(0, 0x4000, Backing::Buffer(Arc::clone(&buffer), 0));
        space.store(0x3000, 7).unwrap();
        space.unbind(0x1000, 0x1000);
        assert_eq!(space.load(0x3000).unwrap(), 7);
        assert!(space.load(0).is_ok() && space.load(0x1000).is_err() && space.load(0x2000).is_ok());
    }

    #[test]
    fn atomic_operations_change_one_word() {
        let space = AddressSpace::default();
        space.bind(0, 4096, Backing::Buffer(buffer(), 0));
        space.store_wide(8, u64::MAX - 1).unwrap();
        space.update_wide(8, |old| old.wrapping_add(1)).unwrap();
        space.update(8, |old| old & 0xff).unwrap();
        assert_eq!(space.load(8).unwrap(), 0xff);
        assert_eq!(space.load(12).unwrap(), u32::MAX);
    }

    #[test]
    fn loads_of_user_memory_and_binds_do_not_block_each_other() {
        let space = Arc::new(AddressSpace::default());
        let own = Arc::new([7u32; 1024]);
        space.bind(0x10000, 4096, Backing::User(own.as_ptr() as u64));
        let (done, ends) = mpsc::channel();
        for _ in 0..2 {
            let (space, own, done) = (Arc::clone(&space), Arc::clone(&own), done.clone());
            thread::spawn(move || {
                (0..200_000).for_each(|_| assert_eq!(space.load(0x10000).unwrap(), own[0]));
                done.send(()).unwrap();
            });
        }
        drop(done);
        let binds = Arc::downgrade(&space);
        drop(space);
        // The thread ends with the last reader, which owns the space.
        thread::spawn(move || {
            while let Some(space) = binds.upgrade() {
                space.bind(0x20000, 4096, Backing::Null);
            }
        });
        for _ in 0..2 {
            ends.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }
}
