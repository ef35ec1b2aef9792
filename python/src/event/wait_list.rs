//! The wait list of an asynchronous operation: the events of the keyword `depends`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::class::PyEvent;
use crate::dpctl::{self, Dpctl};
use crate::errors::{Explain, OrRaise};
use crate::shown::class_name;
use zeusm::sycl::{EventRef, QueueRef};
use zeusm::{Error, Event, Queue};

/// Events of zeusm and of SYCL.
#[derive(Default)]
pub(crate) struct WaitList {
    events: Vec<Event>,
    /// With the queue of each, if that is known.
    sycl: Vec<(EventRef, Option<QueueRef>)>,
}

impl WaitList {
    /// Reads None, an event, or a sequence of events.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(crate) fn read(depends: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut read = Self::default();
        let Some(depends) = depends else {
            return Ok(read);
        };
        if read.add(depends)? {
            return Ok(read);
        }
        let wrong = |found: &Bound<'_, PyAny>| -> PyErr {
            PyTypeError::new_err(format!(
                "depends must be a zeusm.Event, a dpctl.SyclEvent or a sequence of them, not {}",
                class_name(found)
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

    /// Adds an event; returns `false` for any other object.
    fn add(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(event) = object.cast::<PyEvent>() {
            self.events.push(event.get().event.clone());
            return Ok(true);
        }
        // Only objects of dpctl have this method; dpctl is not imported for other objects.
        if !object.hasattr("addressof_ref")? {
            return Ok(false);
        }
        let class = &Dpctl::get(object.py())?.event;
        if !dpctl::is_of(object, class)? {
            return Ok(false);
        }
        let address = dpctl::address(object, class)?;
        // SAFETY: dpctl's event object holds a valid reference as long as it is alive.
        let event = unsafe { EventRef::copy_from_raw(address) }.or_raise()?;
        self.add_sycl(event, None);
        Ok(true)
    }

    /// Adds a SYCL event, unless it is complete, and the queue that it is of.
    pub(crate) fn add_sycl(&mut self, event: EventRef, queue: Option<QueueRef>) {
        if !event.is_complete() {
            self.sycl.push((event, queue));
        }
    }

    /// A handle of `queue` whose operations wait for the events.
    ///
    /// A host task waits for SYCL's events, as their native events cannot be used: an event whose command depends on a SYCL
    /// host task has no native event yet, and the query for it terminates the process. Work on a lost device never completes:
    /// the operations then fail.
    pub(crate) fn of(self, queue: &Queue) -> Result<Queue, Error> {
        let Self { mut events, sycl } = self;
        if !sycl.is_empty() {
            let wait = |(event, queue): &(EventRef, Option<QueueRef>)| match queue {
                Some(queue) => queue.wait_for(event),
                None => event.wait(),
            };
            events.push(queue.try_host_task(move || sycl.iter().try_for_each(wait))?);
        }
        queue.depends_on(&events)
    }
}
