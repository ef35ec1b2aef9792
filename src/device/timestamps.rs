//! Readings of a device's clock.

use std::time::{Duration, Instant};

use level_zero_sys as sys;

use super::clock::{Clocks, Timer};
use super::properties::Device;
use crate::error::Result;

/// Reading the clock of a GPU takes a few microseconds.
const SHORT_READ: Duration = Duration::from_micros(20);
/// How often the clocks are read at most for one comparison.
const MOST_ATTEMPTS: usize = 5;

impl Device {
    /// The clock that kernel timestamps are read from.
    pub(crate) fn timer(&self) -> Result<Timer> {
        let timer = self
            .0
            .timer
            .get_or_try_init(|| self.query_timer().map(Box::new));
        timer.copied()
    }

    fn query_timer(&self) -> Result<Timer> {
        // This version of the structure has the frequency; the older one has the period in whole nanoseconds.
        let mut properties = sys::ze_device_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2,
            ..Default::default()
        };
        // SAFETY: the handle comes from the driver and `properties` names its type.
        unsafe {
            call!(
                self.driver().library(),
                zeDeviceGetProperties(self.handle(), &mut properties)
            )
        }?;
        Ok(Timer {
            frequency: properties.timerResolution,
            valid_bits: properties.kernelTimestampValidBits,
        })
    }

    /// The clocks now. The host's is read after the device's: of a few attempts, the one with the least time between them, as
    /// the thread may be preempted there.
    pub(crate) fn clocks(&self) -> Result<Clocks> {
        let attempt = || -> Result<_> {
            let before = Instant::now();
            let device = self.ticks()?;
            let host = Instant::now();
            Ok((host - before, Clocks { host, device }))
        };
        let mut best = attempt()?;
        for _ in 1..MOST_ATTEMPTS {
            if best.0 <= SHORT_READ {
                break;
            }
            let next = attempt()?;
            if next.0 < best.0 {
                best = next;
            }
        }
        Ok(best.1)
    }

    /// The value of that clock.
    fn ticks(&self) -> Result<u64> {
        let (mut host, mut ticks) = (0, 0);
        // SAFETY: the device is alive, and both outlive the call.
        unsafe {
            call!(
                self.driver().library(),
                zeDeviceGetGlobalTimestamps(self.handle(), &mut host, &mut ticks)
            )
        }?;
        Ok(ticks)
    }
}
