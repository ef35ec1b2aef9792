use zeusm::{Context, Queue, Runtime, SharedMemory};

fn main() -> zeusm::Result<()> {
    let device = Runtime::get()?.default_device()?;
    let context = Context::new(device.driver())?;
    let queue = Queue::new(&context, &device)?;
    let mut memory = SharedMemory::new(&context, &device, 4096)?;
    queue.fill(&mut memory, 7)?;
    let mut copy = SharedMemory::new(&context, &device, 4096)?;
    queue.copy(&mut copy, &memory)?;
    assert!(copy.as_slice()?.iter().all(|&byte| byte == 7));
    println!("{}: 4096 bytes were filled and copied", device.name());
    Ok(())
}
