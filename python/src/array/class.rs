//! `UsmArray`: a memory object, the type of the elements, and their layout in it. Its methods are in the files above.

use std::ops::Range;
use std::sync::Arc;

use once_cell::race::OnceBox;
use pyo3::PyTraverseError;
use pyo3::exceptions::PyBufferError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::memory::{Pinned, PyMemory};
use crate::parse::dtype;
use crate::resolve::ContextDevice;
use crate::transfer::{self, StridedCopy};
use zeusm::dlpack::{Device, Exportable};
use zeusm::suai::{ElementType, ItemType, Layout};

/// An n-dimensional array in USM: a view of a memory object with a type, a shape and strides, without arithmetic.
///
/// Made by `empty`, `asarray`, `from_dlpack`, `as_usm_array` and the memory objects' `view`. Strides and offset count
/// elements, as in `__sycl_usm_array_interface__` and dpctl.
///
/// Examples
/// --------
/// >>> import zeusm
/// >>> array = zeusm.asarray([[1, 2, 3], [4, 5, 6]], dtype="int32", usm_type="shared")
/// >>> array[:, ::-1].T.copy_to_host().tolist()
/// [[3, 6], [2, 5], [1, 4]]
#[pyclass(module = "zeusm", weakref, frozen)]
pub struct UsmArray {
    base: Pinned,
    pub(super) element: ElementType,
    /// The layout relative to the memory's pointer; it is within the memory.
    pub(super) layout: Layout,
    /// For DLPack's consumers, made on first use.
    exportable: OnceBox<Exportable>,
    /// Its device in DLPack's terms, and whether it is on the work stream of that; found on first use.
    pub(super) place: OnceBox<(Device, bool)>,
}

impl UsmArray {
    /// An array in `memory`.
    ///
    /// # Errors
    /// `ValueError` when the array extends beyond the memory.
    pub(super) fn new(
        memory: &Bound<'_, PyMemory>,
        element: ElementType,
        layout: Layout,
    ) -> PyResult<Self> {
        let inner = memory.get();
        let first = inner.address;
        let memory_of_base = first..first + inner.nbytes;
        layout.check_within(first, memory_of_base).or_raise()?;
        Ok(Self {
            base: Pinned::new(memory)?,
            element,
            layout,
            exportable: OnceBox::new(),
            place: OnceBox::new(),
        })
    }

    /// The bytes of a memory object, as a one-dimensional view.
    pub(super) fn bytes(memory: &Bound<'_, PyMemory>) -> PyResult<Self> {
        let layout = Layout::new(&[memory.get().nbytes as i64], None, 0, 1).or_raise()?;
        Self::new(memory, ElementType::BYTE, layout)
    }

    /// Another array in the same memory; `layout` must be within the bytes of this one.
    pub(super) fn with(&self, py: Python<'_>, layout: Layout) -> PyResult<Self> {
        self.of(py, self.element.clone(), layout)
    }

    /// Another array in the same memory of other elements; `layout` must be within the bytes of this one.
    pub(super) fn of(
        &self,
        py: Python<'_>,
        element: ElementType,
        layout: Layout,
    ) -> PyResult<Self> {
        Ok(Self {
            base: self.base.share(py)?,
            element,
            layout,
            exportable: OnceBox::new(),
            place: OnceBox::new(),
        })
    }

    /// The same array as another object.
    pub(super) fn share(&self, py: Python<'_>) -> PyResult<Self> {
        self.with(py, self.layout.clone())
    }

    pub(super) fn memory(&self) -> &PyMemory {
        &self.base
    }

    pub(super) fn pinned(&self) -> &Pinned {
        &self.base
    }

    /// The address of the element with all indices 0, given the address of the memory; without elements, the latter.
    pub(super) fn first(&self, memory: usize) -> usize {
        match self.layout.elements() {
            0 => memory,
            _ => memory.wrapping_add_signed(self.layout.byte_offset()),
        }
    }

    /// The range of addresses from the lowest byte of an element to the highest.
    pub(super) fn extent(&self) -> Range<usize> {
        let extent = self.layout.extent();
        let memory = self.memory().address;
        transfer::range(memory.wrapping_add_signed(extent.start), extent.len())
    }

    /// A memory object from the lowest byte of an element to the highest.
    pub(super) fn extent_memory(&self, py: Python<'_>) -> PyResult<PyMemory> {
        let extent = self.layout.extent();
        let memory = self.memory().share(py)?;
        Ok(PyMemory {
            address: if extent.is_empty() {
                memory.address
            } else {
                let first = memory.address;
                first.wrapping_add_signed(extent.start)
            },
            nbytes: extent.len(),
            terms: memory.terms.aligned(0),
            ..memory
        })
    }

    /// The reason why the host cannot access the array, if it cannot.
    pub(super) fn check_host_accessible(&self) -> Result<(), String> {
        let memory = self.memory();
        if memory.kind.is_host_accessible() {
            return Ok(());
        }
        Err(format!(
            "USM-device memory on {} cannot be accessed by the host: use copy_to_host(){}",
            memory.context_device().device(),
            memory.host_access_hint(),
        ))
    }

    /// Refuses elements that the protocols of NumPy have no name for.
    ///
    /// # Errors
    /// A message.
    pub(super) fn check_typestr(&self) -> Result<(), String> {
        match self.element.narrow() {
            None => Ok(()),
            Some(_) => Err(format!(
                "the protocol has no name for {}: exchange the array by DLPack",
                dtype::name(&self.element)
            )),
        }
    }

    /// Refuses elements at addresses that compiled code does not expect, as in packed records.
    ///
    /// # Errors
    /// A message.
    pub(super) fn check_alignment(&self) -> Result<(), String> {
        let alignment = self.element.alignment();
        let first = self.first(self.memory().address);
        if self.layout.elements() == 0 || first.is_multiple_of(alignment) {
            return Ok(());
        }
        Err(format!(
            "the elements of {} begin at an address that is no multiple of {alignment}, as in packed records or slices \
             at odd offsets, and device code needs one: use copy.copy(), or records with padding",
            dtype::name(&self.element)
        ))
    }

    /// The type of the elements, for a protocol that describes nothing else.
    ///
    /// # Errors
    /// A message for records.
    pub(super) fn item(&self) -> Result<ItemType, String> {
        match &self.element {
            ElementType::Record(record) => Err(format!(
                "the protocol has no records: export a field, one of {}, or copy_to_host()",
                dtype::field_names(record)
            )),
            ElementType::Item(item) => Ok(*item),
        }
    }

    /// The type of elements that other packages compute with in place.
    ///
    /// # Errors
    /// A message for records and elements that are not aligned.
    pub(super) fn item_for_peer(&self) -> Result<ItemType, String> {
        let item = self.item()?;
        self.check_alignment().map(|()| item)
    }

    /// The array for DLPack's consumers, which have to keep it alive.
    ///
    /// # Errors
    /// `BufferError` for what DLPack cannot describe.
    pub(super) fn exportable(&self) -> PyResult<&Exportable> {
        self.exportable.get_or_try_init(|| {
            let item = self.item_for_peer().map_err(PyBufferError::new_err)?;
            let pointer = self.memory().address;
            Exportable::new(pointer, item, &self.layout)
                .or_raise()
                .map(Box::new)
        })
    }

    /// Copies `elements`, which are within the array, to packed memory on the queue of `here`, or from there to them; waits, and
    /// returns the owner of that memory.
    ///
    /// # Safety
    /// `owner` must keep `elements.nbytes()` bytes at `packed` valid: USM of the context, or host memory. `here` must be able to
    /// access the array.
    pub(super) unsafe fn copy_packed<T: Send + 'static>(
        &self,
        py: Python<'_>,
        here: &Arc<ContextDevice>,
        elements: &Layout,
        packed: usize,
        is_scatter: bool,
        owner: T,
    ) -> PyResult<T> {
        let sides = StridedCopy {
            strided: self.memory().for_queue(py)?,
            packed,
            is_scatter,
        };
        let operands = (owner, self.base.share(py)?);
        // SAFETY: the operands own the memory, which contains the elements, and by the caller's word the other side.
        let (owner, _) = unsafe { transfer::copy_strided(py, here, elements, sides, operands) }?;
        Ok(owner)
    }
}

#[pymethods]
impl UsmArray {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.base.object())
    }
}
