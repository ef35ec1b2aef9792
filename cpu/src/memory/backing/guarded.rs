//! The memory of an allocation under the checker: a mapping of its own, with guard pages before and behind it.

use std::ops::Range;
use std::sync::Arc;

use super::exports::InFiles;
use super::mapping::{Mapping, Pages};
use super::reserve;
use crate::check::{self, Properties, Watch};
use crate::system::PAGE;

/// Allocations are aligned to this when the caller does not ask for more: a cache line, and any SIMD vector.
pub const MIN_ALIGNMENT: usize = 64;

/// A mapping for one allocation, which ends as close to the end of its pages as its alignment permits.
#[derive(Debug)]
pub struct Guarded {
    /// Taken when it is dropped.
    mapping: Option<Mapping>,
    /// Its pages without the guards, in bytes from the beginning of the mapping.
    pages: Range<usize>,
    /// Where it begins in the first of them.
    offset: usize,
    in_files: InFiles,
    watch: Option<Arc<Watch>>,
}

impl Guarded {
    /// `size` bytes aligned to `alignment`; `None` when there are none.
    pub fn new(size: usize, alignment: usize) -> Option<Self> {
        let alignment = alignment.max(MIN_ALIGNMENT);
        let before = check::GUARD.next_multiple_of(alignment.max(PAGE));
        let length = size.checked_next_multiple_of(PAGE)?;
        let whole = length.checked_add(before)?.checked_add(check::GUARD)?;
        let guarded = Self {
            mapping: Some(reserve::take(whole, alignment)?),
            pages: before..before + length,
            offset: (length - size) / alignment * alignment,
            in_files: InFiles::default(),
            watch: None,
        };
        let pages = guarded.pages()?;
        if guarded.in_files.begin(pages) {
            // SAFETY: they are new, so no one uses them.
            unsafe { pages.close() };
        }
        Some(guarded)
    }

    /// Has the checker watch it from now on, as an allocation with these properties. Whether its pages are those that its
    /// kind of memory needs.
    pub fn watch(
        &mut self,
        properties: impl FnOnce(usize, Range<usize>, Range<usize>) -> Properties,
    ) -> bool {
        if let Some(mapping) = &self.mapping {
            let start = mapping.address();
            let pages = start + self.pages.start..start + self.pages.end;
            let whole = start..start + mapping.length();
            self.watch = check::watch(properties(pages.start + self.offset, whole, pages));
        }
        self.watch.is_some()
    }

    /// The checker's side of it.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.watch.as_ref()
    }

    /// Its pages without the guards.
    pub fn pages(&self) -> Option<Pages<'_>> {
        self.mapping.as_ref()?.part(self.pages.clone())
    }

    /// Where it begins in the first of its pages.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether its pages are in a file.
    pub fn in_files(&self) -> &InFiles {
        &self.in_files
    }
}

impl Drop for Guarded {
    /// Leaves the mapping to the checker's quarantine.
    fn drop(&mut self) {
        if let Some(pages) = self.pages() {
            self.in_files.end(pages.address());
        }
        if let (Some(watch), Some(mapping)) = (&self.watch, self.mapping.take()) {
            check::bury(watch, Box::new(mapping));
        }
    }
}
