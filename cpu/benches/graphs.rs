//! A hundred launches in one run: appended one after another, as a graph of all, and through OpenCL alone.
//!
//! Prints the medians and their ratios to the first. Of a graph at most 0.5 is wanted; OpenCL's is what no graph can be below.

#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)]

#[macro_use]
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "graphs/opencl.rs"]
mod opencl;
#[path = "../tests/kernels/programs.rs"]
mod programs;
#[path = "../tests/common/graphs.rs"]
mod recorded;
#[path = "../tests/kernels/runtime.rs"]
mod runtime;

use std::ptr;
use std::time::{Duration, Instant};

use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use opencl::Launches;
use runtime::{Runtime, call, must};

const LAUNCHES: u32 = 100;
const ROUNDS: usize = 301;

/// The medians of each, measured in turns so that all see the same machine.
fn medians<const N: usize>(mut works: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let start = Instant::now();
            work();
            times.push(start.elapsed());
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    })
}

fn main() {
    let runtime = Runtime::with_compiler().expect("an OpenCL runtime");
    let code = programs::module();
    let module = runtime.build(&code, &[]).unwrap();
    let kernel = runtime.kernel(module, "increase").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 16, 1, 1));
    let list = runtime.immediate(true);
    for groups in [1, 64] {
        let x = runtime.shared(&vec![0; 16 * groups as usize]);
        assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
        assert_eq!(runtime.set(kernel, 1, 1_u32), OK);
        assert_eq!(runtime.set(kernel, 2, [0_u32; 2]), OK);
        let launch = || {
            for _ in 0..LAUNCHES {
                runtime.launch(list, kernel, groups, ptr::null_mut(), &[]);
            }
        };
        let graph = recorded::record(list, launch);
        let executable = recorded::instantiate(graph).unwrap();
        let mut launches = || {
            launch();
            assert_eq!(runtime.synchronize(list), OK);
        };
        let mut graph = || {
            let appended = recorded::append(list, executable, ptr::null_mut(), &[]);
            assert_eq!(appended, OK);
            assert_eq!(runtime.synchronize(list), OK);
        };
        let [timed, least] = [true, false].map(|timed| Launches::new(LAUNCHES, &code, x, timed));
        let mut timed = || timed.run();
        let mut least = || least.run();
        let works: [&mut dyn FnMut(); _] = [&mut launches, &mut graph, &mut timed, &mut least];
        let medians = medians(works);
        assert_eq!(*x, vec![4 * LAUNCHES * ROUNDS as u32; x.len()]);
        let names = [
            "launches",
            "a graph of them",
            "OpenCL's, as the graph enqueues them",
            "OpenCL's, with one kernel object and without events",
        ];
        println!("{LAUNCHES} launches of {groups} groups:");
        for (name, time) in names.iter().zip(medians) {
            let ratio = time.as_secs_f64() / medians[0].as_secs_f64();
            println!("  {name}: {time:?}, ratio {ratio:.2}");
        }
    }
}
