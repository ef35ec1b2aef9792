//! A hundred launches, appended one after another and as a graph of all, in one run.
//!
//! Prints the medians and their ratio, of which at most 0.5 is wanted. OpenCL's own time for the launches is most of what a graph
//! takes.

#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)]

#[macro_use]
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/kernels/programs.rs"]
mod programs;
#[path = "../tests/common/graphs.rs"]
mod recorded;
#[path = "../tests/kernels/runtime.rs"]
mod runtime;

use std::ptr;
use std::time::{Duration, Instant};

use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use runtime::{Runtime, call, must};

const LAUNCHES: u32 = 100;
const ROUNDS: usize = 301;

/// The medians of both, measured in turns so that both see the same machine.
fn medians(mut one: impl FnMut(), mut other: impl FnMut()) -> [Duration; 2] {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let mut times = [(); 2].map(|()| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        times[0].push(time(&mut one));
        times[1].push(time(&mut other));
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    })
}

fn main() {
    let runtime = Runtime::with_compiler().expect("an OpenCL runtime");
    let module = runtime.build(&programs::module(), &[]).unwrap();
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
        let launches = || {
            launch();
            assert_eq!(runtime.synchronize(list), OK);
        };
        let graph = || {
            let appended = recorded::append(list, executable, ptr::null_mut(), &[]);
            assert_eq!(appended, OK);
            assert_eq!(runtime.synchronize(list), OK);
        };
        let [launches, graph] = medians(launches, graph);
        assert_eq!(*x, vec![2 * LAUNCHES * ROUNDS as u32; x.len()]);
        println!(
            "{LAUNCHES} launches of {groups} groups: {launches:?}, a graph of them: {graph:?}, ratio {:.2}",
            graph.as_secs_f64() / launches.as_secs_f64()
        );
    }
}
