//! `depends=`: what an operation is to come after.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::dpctl::{self, Dpctl};
use super::errors::{Explain, OrRaise};
use super::event::PyEvent;
use zeusm::sycl::EventRef;
use zeusm::{Error, Event, Queue};

/// Events of both worlds.
#[derive(Default)]
pub(super) struct Dependencies {
    events: Vec<Event>,
    sycl: Vec<EventRef>,
}

impl Dependencies {
    /// Reads None, an event, or a sequence of events.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(super) fn read(depends: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut read = Self::default();
        let Some(depends) = depends.filter(|depends| !depends.is_none()) else {
            return Ok(read);
        };
        if read.add(depends)? {
            return Ok(read);
        }
        let wrong = |found: &Bound<'_, PyAny>| -> PyErr {
            let name = found.get_type().name();
            PyTypeError::new_err(format!(
                "depends must be a zeusm.Event, a dpctl.SyclEvent or a sequence of them, not {}",
                name.map_or_else(|_| "?".to_owned(), |name| name.to_string())
            ))
        };
        if depends.is_instance_of::<PyString>() {
            return Err(wrong(depends));
        }
        for event in depends
            .try_iter()
            .explain(depends.py(), |_| wrong(depends))?
        {
            let event = event?;
            if !read.add(&event)? {
                return Err(wrong(&event));
            }
        }
        Ok(read)
    }

    /// Adds what is an event; `false` for anything else.
    fn add(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(event) = object.cast::<PyEvent>() {
            self.events.push(event.get().event().clone());
            return Ok(true);
        }
        // Only where dpctl was imported can the object be an event of its.
        if !object.hasattr("addressof_ref")?
            || !object.is_instance(Dpctl::get(object.py())?.event.bind(object.py()))?
        {
            return Ok(false);
        }
        // SAFETY: dpctl's event object holds a valid reference for as long as it lives.
        let event = unsafe { EventRef::copy_from_raw(dpctl::address(object)?) }.or_raise()?;
        self.add_sycl(event);
        Ok(true)
    }

    /// Adds an event of SYCL.
    pub(super) fn add_sycl(&mut self, event: EventRef) {
        if !event.is_complete() {
            self.sycl.push(event);
        }
    }

    /// Has what is submitted to `queue` from here on come after them.
    ///
    /// SYCL's events are waited for by a host task: the native event of one whose command waits for a host
    /// task does not exist yet, and asking for it ends the process.
    pub(super) fn go_before(self, queue: &Queue) -> Result<(), Error> {
        let Self { mut events, sycl } = self;
        if !sycl.is_empty() {
            events.push(queue.host_task(move || sycl.iter().for_each(EventRef::wait))?);
        }
        if !events.is_empty() {
            queue.barrier(&events)?;
        }
        Ok(())
    }
}
