//! The memory of allocations: small ones are pages of an arena, large ones have a mapping of their own, and so have all under the
//! checker, with guard pages around them. Imported ones are a mapping of another process's pages.

mod arena;
mod pages;
mod part;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod platform;
mod record;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::fs::File;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use level_zero_sys as sys;

use arena::Suballocation;
pub use arena::at_fork;
use pages::Pages;
pub use part::Part;
pub use platform::error::ShareError;
pub use platform::exports::Export;
use platform::exports::InFiles;
pub use platform::mapping::{Mapping, is_accessible};
pub use platform::{can_be_exported, exports, has_memory_files};
#[cfg(target_os = "linux")]
pub use platform::{is_memory_file, memory_file, own_memory_file, reopen};
pub use record::Record;

use crate::abi::result::ZeResult;
use crate::check::{self, GUARD, Properties, Watch};
use crate::system::PAGE;

/// From this size on, memory has a mapping of its own, so that freeing returns it to the system at once.
const OWN_MAPPING_THRESHOLD: usize = 256 << 10;
/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const MIN_ALIGNMENT: usize = 64;
/// The largest alignment that can be asked for.
pub const MAX_ALIGNMENT: usize = 1 << 30;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// New memory of this process.
    Own,
    /// The same under the checker.
    Guarded,
    /// Another process's.
    Import,
    /// That of a file which is not of this runtime.
    External,
    /// Memory of the program, which keeps it.
    Program,
}

/// What has the pages.
enum Owner {
    Mapping(Mapping),
    Arena(Suballocation),
}

/// The memory of an allocation, uninitialised at first.
pub struct Backing {
    form: Form,
    /// Taken when it is dropped.
    owner: Option<Owner>,
    /// Its pages, in bytes from the beginning of the mapping that has them.
    pages: Range<usize>,
    /// Where it begins in the first of them.
    offset: usize,
    in_files: InFiles,
    watch: Option<Arc<Watch>>,
}

impl Backing {
    /// `size` bytes aligned to `alignment`, a power of two up to [`MAX_ALIGNMENT`], `at_page`, under the checker, too, or not;
    /// `None` when there are none.
    pub fn new(size: usize, alignment: usize, at_page: bool) -> Option<Self> {
        let backing = if check::is_on() && !at_page {
            let (mapping, pages, offset) = guarded(size, alignment)?;
            Self::of(Form::Guarded, Owner::Mapping(mapping), pages, offset)
        } else if size >= OWN_MAPPING_THRESHOLD || alignment > PAGE {
            // With a byte more, which costs a page of addresses at most: the end of this allocation, to which a recorded
            // command may have a pointer, is the base of no other one, whose free would make that command an error.
            let mapping = Mapping::anonymous(size.checked_add(1)?, alignment)?;
            Self::whole(Form::Own, mapping, 0)
        } else {
            let (suballocation, pages) = Suballocation::new(size)?;
            Self::of(Form::Own, Owner::Arena(suballocation), pages, 0)
        };
        let pages = backing.pages()?;
        if backing.in_files.begin(pages) && backing.form == Form::Guarded {
            // SAFETY: they are new, so no one uses them.
            unsafe { pages.close() };
        }
        Some(backing)
    }

    /// The pages of another process's file that hold the allocation of `record`.
    pub fn import(file: &File, record: &Record) -> Option<Self> {
        let start = record.offset / PAGE as u64 * PAGE as u64;
        let length = usize::try_from(record.offset + record.size - start).ok()?;
        let mapping = Mapping::of_file(file, start, length.checked_next_multiple_of(PAGE)?)?;
        let offset = (record.offset - start) as usize;
        Some(Self::whole(Form::Import, mapping, offset))
    }

    /// The first `size` bytes of any file that can be mapped, aligned to `alignment`; `None` when it is shorter or the system
    /// refuses.
    pub fn external(file: &File, size: usize, alignment: usize) -> Option<Self> {
        let mapping = Mapping::of_external(file, size, alignment)?;
        Some(Self::whole(Form::External, mapping, 0))
    }

    /// Pages that the program keeps mapped as long as this lives.
    pub fn of_program(pages: Range<usize>) -> Self {
        Self {
            form: Form::Program,
            owner: None,
            pages,
            offset: 0,
            in_files: InFiles::default(),
            watch: None,
        }
    }

    fn whole(form: Form, mapping: Mapping, offset: usize) -> Self {
        let pages = 0..mapping.length();
        Self::of(form, Owner::Mapping(mapping), pages, offset)
    }

    fn of(form: Form, owner: Owner, pages: Range<usize>, offset: usize) -> Self {
        Self {
            form,
            owner: Some(owner),
            pages,
            offset,
            in_files: InFiles::default(),
            watch: None,
        }
    }

    fn mapping(&self) -> Option<&Mapping> {
        self.owner.as_ref().map(|owner| match owner {
            Owner::Mapping(mapping) => mapping,
            Owner::Arena(suballocation) => &suballocation.mapping,
        })
    }

    fn pages(&self) -> Option<Pages<'_>> {
        self.mapping()?.pages().part(self.pages.clone())
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        let base = self.mapping().map_or(0, Mapping::address);
        base + self.pages.start + self.offset
    }

    /// The alignment that memory of its form always has.
    pub fn granularity(&self) -> usize {
        match self.form {
            Form::Own | Form::External | Form::Program => PAGE,
            Form::Guarded | Form::Import => MIN_ALIGNMENT,
        }
    }

    /// Whose memory it is.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Exports it; `record` describes the allocation, which begins at an offset in its file.
    ///
    /// # Errors
    /// Those of [`InFiles::export`]; `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory of another process or file.
    pub fn export(&self, record: impl FnOnce(usize) -> Record) -> ZeResult<Export> {
        let is_own = matches!(self.form, Form::Own | Form::Guarded);
        let pages = self.pages().filter(|_| is_own);
        let pages = pages.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        if let Some(watch) = &self.watch {
            watch.release();
        }
        self.in_files.export(pages, &record(self.offset))
    }

    /// Has the checker watch memory with guards from now on, as an allocation with these properties: its first byte, all
    /// addresses, and its pages. Whether its pages are those that its kind of memory needs.
    pub fn watch(
        &mut self,
        properties: impl FnOnce(usize, Range<usize>, Range<usize>) -> Properties,
    ) -> bool {
        if self.form == Form::Guarded
            && let Some(mapping) = self.mapping()
        {
            let start = mapping.address();
            let pages = start + self.pages.start..start + self.pages.end;
            let whole = start..start + mapping.length();
            self.watch = check::watch(properties(self.address(), whole, pages));
        } else if matches!(self.form, Form::Program | Form::Import) && check::is_on() {
            let first = self.address();
            let pages = first..first + self.pages.len();
            // Other memory of the program beside it is not taken for a part of it.
            self.watch = check::know(properties(first, first..first, pages));
        }
        self.form != Form::Guarded || self.watch.is_some()
    }

    /// The checker's side of it, when the checker is on.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.watch.as_ref()
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let Some(pages) = self.pages() else {
            if let Some(watch) = &self.watch {
                check::bury(watch, Box::new(()));
            }
            return;
        };
        let was_in_file = self.in_files.end(pages.address());
        let is_arena = matches!(self.owner, Some(Owner::Arena(_)));
        // SAFETY: they are freed, so no one uses them.
        let is_shared = was_in_file && is_arena && unsafe { pages.clear() }.is_err();
        match (self.owner.take(), &self.watch) {
            // They, and so their arena, are never used again.
            (Some(Owner::Arena(suballocation)), _) if is_shared => mem::forget(suballocation),
            // The checker has a quarantine.
            (Some(Owner::Mapping(mapping)), Some(watch)) if was_in_file => {
                check::bury(watch, Box::new(mapping));
            }
            (Some(Owner::Mapping(mapping)), Some(watch)) => {
                check::bury(watch, Box::new(Private(mapping)));
            }
            _ => {}
        }
    }
}

/// The mapping of a freed allocation of this process alone, which the checker may hand out again.
struct Private(Mapping);

/// Memory for the checker: an inaccessible mapping for `size` bytes aligned to `alignment`, with the range of their pages in it and their offset in the first
/// of these: they end as close to the end of their pages as the alignment permits. `None` when there are none.
fn guarded(size: usize, alignment: usize) -> Option<(Mapping, Range<usize>, usize)> {
    let alignment = alignment.max(MIN_ALIGNMENT);
    let before = GUARD.next_multiple_of(alignment.max(PAGE));
    let length = size.checked_next_multiple_of(PAGE)?;
    let whole = length.checked_add(before)?.checked_add(GUARD)?;
    let offset = (length - size) / alignment * alignment;
    let fits = |it: &Properties| {
        let is_aligned = it.whole.start.is_multiple_of(alignment);
        is_aligned && (it.whole.len(), it.pages.len()) == (whole, length)
    };
    // Saves system calls, and the memory of small ones.
    let again = check::exhume(fits).and_then(|owner| owner.downcast::<Private>().ok());
    let mapping = match again {
        Some(pages) => pages.0,
        None => Mapping::closed(whole, alignment)?,
    };
    Some((mapping, before..before + length, offset))
}
