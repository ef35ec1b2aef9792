//! A program over the whole API, step by step. Each step checks its bytes, and can be done again.

use std::error::Error;
use std::time::Duration;

use zeusm::ipc::{self, is_supported};
use zeusm::pool::{Options, Pool};
use zeusm::usm::Allocation;
use zeusm::usm::LevelZero;
use zeusm::{
    Completion, Context, Device, DeviceMemory, HostMemory, IpcHandle, Queue, SharedMemory, UsmKind,
    sys,
};

use crate::driver::FaultDriver;
use crate::expected;

type Outcome = Result<(), Box<dyn Error>>;

/// Where a step works.
struct Place {
    context: Context,
    device: Device,
    queue: Queue,
    /// Another queue of the context, and one of another context.
    near: Queue,
    far: Queue,
}

/// What may be done in a [`Place`], by name.
type Step = (&'static str, fn(&Place) -> Outcome);

const STEPS: [Step; 13] = [
    ("allocate", allocate),
    ("copy", copy),
    ("copy much", copy_much),
    ("work asynchronously", work_asynchronously),
    ("let go of operations", let_go),
    (QUEUES, order_queues),
    (CONTEXTS, order_contexts),
    (PEERS, copy_between_contexts),
    ("ask for times", ask_for_times),
    ("use a pool", use_a_pool),
    ("ask about pointers", ask_about_pointers),
    ("share with processes", share),
    ("ask devices", ask_devices),
];

/// The steps in which a queue's own thread, or a drop, waits and signals: they have nobody to tell.
const ELSEWHERE: [&str; 3] = [QUEUES, CONTEXTS, LAST];
const QUEUES: &str = "order queues";
const CONTEXTS: &str = "order contexts";
/// The step that takes the way through staging memory where the direct one fails.
const PEERS: &str = "copy between contexts";
const LAST: &str = "drop everything";

/// Runs every step on a new place, once more if a failure was told. What was wrong.
pub fn play(driver: &FaultDriver, device: &Device, code: sys::ze_result_t) -> Vec<String> {
    let mut watch = Watch {
        driver,
        code,
        fired: false,
        wrong: Vec::new(),
    };
    let made = watch.step("make a place", || {
        let context = Context::new(device.driver())?;
        let queue = Queue::new(&context, device)?;
        let near = Queue::new(&context, device)?;
        Ok(Place {
            context,
            near,
            far: Queue::new(&Context::new(device.driver())?, device)?,
            device: device.clone(),
            queue,
        })
    });
    if let Some(place) = made {
        for (name, step) in STEPS {
            watch.step(name, || step(&place));
        }
        for queue in [&place.queue, &place.near, &place.far] {
            watch.step("finish", || Ok(queue.wait()?));
        }
        drop(place);
        watch.step(LAST, || Ok(()));
    }
    watch.wrong
}

/// Compares what is told with what failed.
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
                let elsewhere = ELSEWHERE.contains(&name) && expected::is_repeated(&function);
                if name != PEERS && !elsewhere && !expected::may_pass(&function, self.code) {
                    self.wrong.push(format!("{name}: the failure was not told"));
                }
                return Some(value);
            }
            (Err(error), None) => {
                self.wrong.push(format!("{name}: {error}, without a cause"));
                return None;
            }
            (Err(error), Some(function)) => self.compare(name, &*error, &function),
        }
        // It fails once; the same again finds everything in order.
        match step() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong.push(format!("{name}, done again: {error}"));
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
            self.wrong.push(format!(
                "{name}: {error}, which is no answer of Level Zero's"
            ));
            return;
        };
        if cause.result() != Some(self.code) || !cause.to_string().contains(function) {
            self.wrong
                .push(format!("{name}: {cause}, which tells of something else"));
        }
    }
}

/// What a step found in memory, and what should be there.
fn same(found: &[u8], wanted: &[u8]) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    let place = found
        .iter()
        .zip(wanted)
        .position(|(found, wanted)| found != wanted);
    Err(format!("wrong bytes of {} from {place:?} on", found.len()).into())
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

fn allocate(place: &Place) -> Outcome {
    for kind in KINDS {
        for (size, alignment) in [(0, 0), (1, 0), (64, 4096), (5000, 0), (3 << 20, 0)] {
            let new = Allocation::new(&place.context, &place.device, kind, size, alignment)?;
            let direct = Allocation::direct(&place.context, &place.device, kind, size, alignment)?;
            for memory in [&new, &direct] {
                if memory.as_ptr().is_null() != (size == 0) {
                    return Err(format!("{size} bytes at {:?}", memory.as_ptr()).into());
                }
            }
        }
    }
    Ok(())
}

fn copy(place: &Place) -> Outcome {
    round_trip(place, 1000)
}

fn copy_much(place: &Place) -> Outcome {
    round_trip(place, 2 << 20)
}

fn round_trip(place: &Place, size: usize) -> Outcome {
    let queue = &place.queue;
    let mut host = HostMemory::new(&place.context, &place.device, size)?;
    let mut device = DeviceMemory::new(&place.context, &place.device, size)?;
    let mut shared = SharedMemory::new(&place.context, &place.device, size)?;
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

fn work_asynchronously(place: &Place) -> Outcome {
    let (queue, size) = (&place.queue, 1 << 20);
    let bytes = pattern(size, 2);
    let first = DeviceMemory::new(&place.context, &place.device, size)?;
    let second = SharedMemory::new(&place.context, &place.device, size)?;
    let none = HostMemory::new(&place.context, &place.device, 0)?;
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

fn let_go(place: &Place) -> Outcome {
    let queue = &place.queue;
    for value in 0..3 {
        let memory = DeviceMemory::new(&place.context, &place.device, 1 << 20)?;
        drop(queue.fill_async(memory, value)?);
    }
    queue.wait()?;
    queue.collect();
    if !queue.is_idle() {
        return Err("operands are kept after the operations".into());
    }
    Ok(())
}

fn order_queues(place: &Place) -> Outcome {
    let other = &place.near;
    let memory = DeviceMemory::new(&place.context, &place.device, 1 << 20)?;
    let filled = place.queue.fill_async(memory, 5)?;
    other.barrier(&[filled.event().clone()])?;
    let task = other.host_task(|| ())?;
    other.barrier(&[task])?.wait(None)?;
    let (_, back) = other.read_async(filled.wait()?, vec![0; 1 << 20])?.wait()?;
    same(&back, &vec![5; 1 << 20])
}

fn order_contexts(place: &Place) -> Outcome {
    let other = &place.far;
    // Long enough under way that a barrier that does not wait for it is found out.
    let memory = SharedMemory::new(&place.context, &place.device, 4 << 20)?;
    let filled = place.queue.fill_async(memory, 6)?;
    other.barrier(&[filled.event().clone()])?.wait(None)?;
    if !filled.is_complete()? {
        return Err("the barrier did not wait for the other context".into());
    }
    filled.wait()?;
    Ok(())
}

fn copy_between_contexts(place: &Place) -> Outcome {
    let size = 1 << 16;
    let mut here = DeviceMemory::new(&place.context, &place.device, size)?;
    let mut there = DeviceMemory::new(place.far.context(), &place.device, size)?;
    let bytes = pattern(size, 3);
    place.queue.fill(&mut here, 0)?;
    place.far.write(&mut there, &bytes)?;
    let (to, from) = (here.as_ptr().cast_mut().cast(), there.as_ptr().cast());
    // SAFETY: both memories live until the copy is done, and are as long as each other.
    unsafe { place.queue.peer_copy_raw(to, &place.far, from, size) }?;
    let mut back = vec![0; size];
    place.queue.read(&here, &mut back)?;
    same(&back, &bytes)
}

fn ask_for_times(place: &Place) -> Outcome {
    let memory = DeviceMemory::new(&place.context, &place.device, 1 << 16)?;
    let before = std::time::Instant::now();
    let filled = place.queue.fill_async(memory, 1)?;
    let event = filled.event().clone();
    filled.wait()?;
    let timing = event.timing()?;
    if timing.end < timing.start || event.device_time(before)? > timing.start {
        return Err(format!("{timing:?}").into());
    }
    Ok(())
}

fn use_a_pool(place: &Place) -> Outcome {
    for kind in KINDS {
        let provider = LevelZero::new(&place.context, &place.device, kind);
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

fn ask_about_pointers(place: &Place) -> Outcome {
    for kind in KINDS {
        let memory = Allocation::new(&place.context, &place.device, kind, 100, 0)?;
        let attributes = place
            .context
            .pointer_attributes(memory.as_ptr().addr() + 99)?;
        if attributes.kind != kind || attributes.base != memory.as_ptr().addr() {
            return Err(format!("{attributes:?}").into());
        }
    }
    Ok(())
}

fn share(place: &Place) -> Outcome {
    let mut memory = SharedMemory::new(&place.context, &place.device, 4096)?;
    place.queue.fill(&mut memory, 4)?;
    let memory = memory.into_allocation();
    let handle = IpcHandle::new(&memory, 1024..2048)?;
    let mapping = IpcHandle::from_bytes(&handle.to_bytes())?.open(&place.context, &place.device)?;
    let mut back = vec![0; mapping.size()];
    let (to, size) = (back.as_mut_ptr().cast(), mapping.size());
    // SAFETY: the mapping and the vector live until the copy is done, and are as long as each other.
    let copied = unsafe {
        place
            .queue
            .copy_raw(to, mapping.as_ptr(), size, Completion::SpinWait)
    }?;
    if let Some(event) = copied {
        place.queue.finish(&event, "copy", size)?;
    }
    same(&back, &vec![4; 1024])
}

fn ask_devices(place: &Place) -> Outcome {
    let driver = place.device.driver();
    if !is_supported(driver)? || driver.api_version()? < (1, 0) {
        return Err("the driver is not what it was".into());
    }
    place.device.can_access(&place.device)?;
    Ok(())
}
