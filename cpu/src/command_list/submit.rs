//! Where every append ends: in a recording, of a regular list or of a graph, or in a stream.

use std::sync::Arc;

use level_zero_sys as sys;

use super::list::{CommandList, Role};
use super::recording::Command;
use crate::abi::result::{ZeResult, ensure};
use crate::engine::{Operation, Order, Stream};
use crate::event::Event;

impl CommandList {
    /// Appends an operation; every append ends here.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when a regular list is closed, or the device does not access the memory; and the
    /// errors of [`Operation::pin`] and of the graph that records the list, if one does.
    pub fn append<O: Operation + 'static>(
        &self,
        operation: O,
        order: Order,
        event: Option<Arc<Event>>,
        waits: &[Arc<Event>],
    ) -> ZeResult {
        self.check_access(&operation)?;
        let order = if self.in_order { Order::Barrier } else { order };
        if let Some((handle, graph)) = self.recorder(event.as_deref(), waits)? {
            let (operation, waits) = (Arc::new(operation), waits.to_vec());
            let command = Command {
                operation,
                order,
                waits,
                event,
            };
            return graph.record(handle, self.source(), command);
        }
        match &self.role {
            Role::Immediate(immediate) => {
                submit(
                    &immediate.stream,
                    Arc::new(operation),
                    order,
                    waits,
                    event.as_deref(),
                )?;
                immediate.synchronize_if_synchronous()
            }
            Role::Regular(recording) => {
                let mut recording = recording.get().lock();
                ensure(!recording.closed, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
                recording.push(Command {
                    operation: Arc::new(operation),
                    order,
                    waits: waits.to_vec(),
                    event,
                });
                Ok(())
            }
        }
    }
}

/// Submits an operation with the current signals of its events.
///
/// # Errors
/// Those of [`Operation::pin`]; nothing is submitted then.
pub(super) fn submit(
    stream: &Stream,
    operation: Arc<dyn Operation>,
    order: Order,
    waits: &[Arc<Event>],
    event: Option<&Event>,
) -> ZeResult {
    if let Some(operation) = operation.at_submission() {
        return submit(stream, operation, order, waits, event);
    }
    let pins = operation.pin()?;
    // Taken before the operation's own event, which may be in the wait list, gets a new signal.
    let waits = waits.iter().map(|event| event.signal()).collect();
    stream.submit(
        operation,
        pins,
        order,
        waits,
        event.map(Event::signal_for_submission),
    );
    Ok(())
}
