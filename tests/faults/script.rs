//! A script that uses the whole API, in steps. Each step checks its results and can be repeated.

use std::error::Error;
use std::time::Duration;

use zeusm::ipc::{self, is_supported};
use zeusm::pool::{Options, Pool};
use zeusm::usm::Allocation;
use zeusm::usm::LevelZeroProvider;
use zeusm::{
    Completion, Context, Device, DeviceMemory, HostMemory, IpcHandle, Queue, SharedMemory, UsmKind,
    sys,
};

use crate::driver::FaultDriver;
use crate::expected;

type Outcome = Result<(), Box<dyn Error>>;

/// The objects of a run.
struct Setup {
    context: Context,
    device: Device,
    queue: Queue,
    /// Another queue of the same context, and a queue of another context.
    near: Queue,
    far: Queue,
}

/// A step and its name.
type Step = (&'static str, fn(&Setup) -> Outcome);

const STEPS: [Step; 13] = [
    ("allocate", allocate),
    ("copy", copy),
    ("copy much", copy_much),
    ("work asynchronously", work_asynchronously),
    ("drop operations in flight", drop_operations),
    (QUEUES, order_queues),
    (CONTEXTS, order_contexts),
    (PEERS, copy_between_contexts),
    ("ask for times", ask_for_times),
    ("use a pool", use_a_pool),
    ("ask about pointers", ask_about_pointers),
    ("share with processes", share),
    ("ask devices", ask_devices),
];

/// The steps in which a queue's thread or `drop` waits and signals; these cannot report failures.
const UNREPORTED: [&str; 3] = [QUEUES, CONTEXTS, LAST];
const QUEUES: &str = "order queues";
const CONTEXTS: &str = "order contexts";
/// The step whose copies are staged through the host when a direct copy fails.
const PEERS: &str = "copy between contexts";
const LAST: &str = "drop everything";

/// Runs all steps on new objects, and retries a step that reported a failure. Returns the findings.
pub fn play(driver: &FaultDriver, device: &Device, code: sys::ze_result_t) -> Vec<String> {
    let mut watch = Watch {
        driver,
        code,
        fired: false,
        wrong: Vec::new(),
    };
    let made = watch.step("set up", || {
        let context = Context::new(device.driver())?;
        let queue = Queue::new(&context, device)?;
        let near = Queue::new(&context, device)?;
        Ok(Setup {
            context,
            near,
            far: Queue::new(&Context::new(device.driver())?, device)?,
            device: device.clone(),
            queue,
        })
    });
    if let Some(setup) = made {
        for (name, step) in STEPS {
            watch.step(name, || step(&setup));
        }
        for queue in [&setup.queue, &setup.near, &setup.far] {
            watch.step("finish", || Ok(queue.wait()?));
        }
        drop(setup);
        watch.step(LAST, || Ok(()));
    }
    watch.wrong
}

/// Compares the reported error with the injected failure.
struct Watch<'a> {
    driver: &'a FaultDriver,
    code: sys::ze_result_t,
    fired: bool,
    wrong: Vec<String>,
}

impl Watch<'_> {
    fn step<T>(&mut self, name: &str, step: impl Fn() -> Result<T, Box<dyn Error>>) -> Option<T> {
        let outcome = step();
        let fired = if self.fired {
            None
        } else {
            self.driver.fired()
        };
        self.fired |= fired.is_some();
        match (outcome, fired) {
            (Ok(value), None) => return Some(value),
            (Ok(value), Some(function)) => {
                let unreported = UNREPORTED.contains(&name) && expected::is_retried(&function);
                if name != PEERS && !unreported && !expected::may_pass(&function, self.code) {
                    self.wrong
                        .push(format!("{name}: the failure was not reported"));
                }
                return Some(value);
            }
            (Err(error), None) => {
                self.wrong
                    .push(format!("{name}: {error}, without an injected failure"));
                return None;
            }
            (Err(error), Some(function)) => self.compare(name, &*error, &function),
        }
        // Only one call fails, so a retry must succeed.
        match step() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong.push(format!("{name}, retried: {error}"));
                None
            }
        }
    }

    fn compare(&mut self, name: &str, error: &(dyn Error + 'static), function: &str) {
        let cause = match error.downcast_ref::<ipc::Error>() {
            Some(ipc::Error::LevelZero(cause) | ipc::Error::Refused { cause, .. }) => Some(cause),
            _ => error.downcast_ref::<zeusm::Error>(),
        };
        let Some(cause) = cause else {
            self.wrong
                .push(format!("{name}: {error}, which is not a Level Zero error"));
            return;
        };
        if cause.result() != Some(self.code) || !cause.to_string().contains(function) {
            self.wrong.push(format!(
                "{name}: {cause}, which is not the injected failure"
            ));
        }
    }
}

/// Compares bytes with the expected ones.
fn same(found: &[u8], expected: &[u8]) -> Outcome {
    if found == expected {
        return Ok(());
    }
    let first = found
        .iter()
        .zip(expected)
        .position(|(found, expected)| found != expected);
    Err(format!("wrong bytes of {}, the first at {first:?}", found.len()).into())
}

fn pattern(size: usize, seed: usize) -> Vec<u8> {
    let once: Vec<u8> = (0..251)
        .map(|index| ((index + seed) * 31 % 251) as u8)
        .collect();
    let mut bytes = once.repeat(size / once.len() + 1);
    bytes.truncate(size);
    bytes
}

const KINDS: [UsmKind; 3] = [UsmKind::Host, UsmKind::Device, UsmKind::Shared];

fn allocate(setup: &Setup) -> Outcome {
    for kind in KINDS {
        for (size, alignment) in [(0, 0), (1, 0), (64, 4096), (5000, 0), (3 << 20, 0)] {
            let new = Allocation::new(&setup.context, &setup.device, kind, size, alignment)?;
            let direct = Allocation::direct(&setup.context, &setup.device, kind, size, alignment)?;
            for memory in [&new, &direct] {
                if memory.as_ptr().is_null() != (size == 0) {
                    return Err(format!("{size} bytes at {:?}", memory.as_ptr()).into());
                }
            }
        }
    }
    Ok(())
}

fn copy(setup: &Setup) -> Outcome {
    round_trip(setup, 1000)
}

fn copy_much(setup: &Setup) -> Outcome {
    round_trip(setup, 2 << 20)
}

fn round_trip(setup: &Setup, size: usize) -> Outcome {
    let queue = &setup.queue;
    let mut host = HostMemory::new(&setup.context, &setup.device, size)?;
    let mut device = DeviceMemory::new(&setup.context, &setup.device, size)?;
    let mut shared = SharedMemory::new(&setup.context, &setup.device, size)?;
    let bytes = pattern(size, 1);
    let mut back = vec![0; size];
    queue.fill(&mut host, 3)?;
    queue.read(&host, &mut back)?;
    same(&back, &vec![3; size])?;
    queue.write(&mut host, &bytes)?;
    queue.copy(&mut device, &host)?;
    queue.copy(&mut shared, &device)?;
    queue.read(&shared, &mut back)?;
    same(&back, &bytes)
}

fn work_asynchronously(setup: &Setup) -> Outcome {
    let (queue, size) = (&setup.queue, 1 << 20);
    let bytes = pattern(size, 2);
    let first = DeviceMemory::new(&setup.context, &setup.device, size)?;
    let second = SharedMemory::new(&setup.context, &setup.device, size)?;
    let none = HostMemory::new(&setup.context, &setup.device, 0)?;
    let filled = queue.fill_async(second, 9)?;
    let nothing = queue.fill_async(none, 1)?;
    let written = queue.write_async(first, bytes.clone())?;
    let second = filled.wait()?;
    nothing.wait()?;
    let (first, _) = match written.wait_timeout(Duration::from_millis(1))? {
        Ok(operands) => operands,
        Err(operation) => operation.wait()?,
    };
    let copied = queue.copy_async(second, first)?;
    copied.is_complete()?;
    let (second, _) = copied.wait()?;
    let (_, back) = queue.read_async(second, vec![0; size])?.wait()?;
    same(&back, &bytes)
}

fn drop_operations(setup: &Setup) -> Outcome {
    let queue = &setup.queue;
    for value in 0..3 {
        let memory = DeviceMemory::new(&setup.context, &setup.device, 1 << 20)?;
        drop(queue.fill_async(memory, value)?);
    }
    queue.wait()?;
    queue.reclaim();
    if !queue.is_reclaimed() {
        return Err("operands are retained after the operations".into());
    }
    Ok(())
}

fn order_queues(setup: &Setup) -> Outcome {
    let other = &setup.near;
    let memory = DeviceMemory::new(&setup.context, &setup.device, 1 << 20)?;
    let filled = setup.queue.fill_async(memory, 5)?;
    other.barrier(&[filled.event().clone()])?;
    let task = other.host_task(|| ())?;
    other.barrier(&[task])?.wait(None)?;
    let (_, back) = other.read_async(filled.wait()?, vec![0; 1 << 20])?.wait()?;
    same(&back, &vec![5; 1 << 20])
}

fn order_contexts(setup: &Setup) -> Outcome {
    let other = &setup.far;
    // The fill is large enough to be still in flight if the barrier does not wait for it.
    let memory = SharedMemory::new(&setup.context, &setup.device, 4 << 20)?;
    let filled = setup.queue.fill_async(memory, 6)?;
    other.barrier(&[filled.event().clone()])?.wait(None)?;
    if !filled.is_complete()? {
        return Err("the barrier did not wait for the other context".into());
    }
    filled.wait()?;
    Ok(())
}

fn copy_between_contexts(setup: &Setup) -> Outcome {
    let size = 1 << 16;
    let mut here = DeviceMemory::new(&setup.context, &setup.device, size)?;
    let mut there = DeviceMemory::new(setup.far.context(), &setup.device, size)?;
    let bytes = pattern(size, 3);
    setup.queue.fill(&mut here, 0)?;
    setup.far.write(&mut there, &bytes)?;
    let (to, from) = (here.as_ptr().cast_mut().cast(), there.as_ptr().cast());
    // SAFETY: both memories live until the copy is complete, and are of the same size.
    unsafe { setup.queue.peer_copy_raw(to, &setup.far, from, size) }?;
    let mut back = vec![0; size];
    setup.queue.read(&here, &mut back)?;
    same(&back, &bytes)
}

fn ask_for_times(setup: &Setup) -> Outcome {
    let memory = DeviceMemory::new(&setup.context, &setup.device, 1 << 16)?;
    let before = std::time::Instant::now();
    let filled = setup.queue.fill_async(memory, 1)?;
    let event = filled.event().clone();
    filled.wait()?;
    let timing = event.timing()?;
    if timing.end < timing.start || event.device_time(before)? > timing.start {
        return Err(format!("{timing:?}").into());
    }
    Ok(())
}

fn use_a_pool(setup: &Setup) -> Outcome {
    for kind in KINDS {
        let provider = LevelZeroProvider::new(&setup.context, &setup.device, kind);
        let pool = Pool::new(provider, Options::default());
        let blocks: Result<Vec<_>, _> = [1, 100, 5000, 100_000, 3 << 20]
            .into_iter()
            .map(|size| Allocation::in_pool(&pool, size, 0))
            .collect();
        let used = pool.statistics().used_bytes;
        drop(blocks?);
        let statistics = pool.statistics();
        if used < 100_000 || statistics.used_bytes != 0 {
            return Err(format!("{used} used, then {statistics:?}").into());
        }
        pool.trim(1 << 20);
        pool.free_all_blocks();
    }
    Ok(())
}

fn ask_about_pointers(setup: &Setup) -> Outcome {
    for kind in KINDS {
        let memory = Allocation::new(&setup.context, &setup.device, kind, 100, 0)?;
        let attributes = setup
            .context
            .pointer_attributes(memory.as_ptr().addr() + 99)?;
        if attributes.kind != kind || attributes.base != memory.as_ptr().addr() {
            return Err(format!("{attributes:?}").into());
        }
    }
    Ok(())
}

fn share(setup: &Setup) -> Outcome {
    let mut memory = SharedMemory::new(&setup.context, &setup.device, 4096)?;
    setup.queue.fill(&mut memory, 4)?;
    let memory = memory.into_allocation();
    let handle = IpcHandle::new(&memory, 1024..2048)?;
    let mapping = IpcHandle::from_bytes(&handle.to_bytes())?.open(&setup.context, &setup.device)?;
    let mut back = vec![0; mapping.size()];
    let (to, size) = (back.as_mut_ptr().cast(), mapping.size());
    // SAFETY: the mapping and the vector live until the copy is complete, and are of the same size.
    let copied = unsafe {
        setup
            .queue
            .copy_raw(to, mapping.as_ptr(), size, Completion::SpinWait)
    }?;
    if let Some(event) = copied {
        setup.queue.finish(&event, "copy", size)?;
    }
    same(&back, &vec![4; 1024])
}

fn ask_devices(setup: &Setup) -> Outcome {
    let driver = setup.device.driver();
    if !is_supported(driver)? {
        return Err("the driver's properties are wrong".into());
    }
    setup.device.can_access(&setup.device)?;
    Ok(())
}
