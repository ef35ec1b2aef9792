use super::*;

const MIB: usize = 1 << 20;

/// Adds and subtracts pseudo-random numbers of bytes, in `count` of four shards. Returns the measured peak, the true one
/// and the number of measurements.
fn run(count: usize, steps: usize, largest: usize) -> (i64, i64, usize) {
    let mut levels: [Level; 4] = Default::default();
    let (mut peaks, mut measurements) = (Peaks::default(), 0);
    let (mut used, mut peak) = (0, 0);
    let mut state = 7_usize;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) % bound
    };
    for _ in 0..steps {
        let level = &mut levels[random(count)];
        let bytes = random(largest);
        // Around 64 MiB in use.
        if random(128 * MIB) < used as usize {
            level.subtract(bytes);
            used -= bytes as i64;
            continue;
        }
        let exceeds = level.exceeds_with(bytes);
        level.add(bytes);
        used += bytes as i64;
        peak = peak.max(used);
        if exceeds {
            measurements += 1;
            peaks.measure(levels.iter_mut());
        }
    }
    peaks.measure(levels.iter_mut());
    (peaks.settle(), peak, measurements)
}

#[test]
fn one_shard_has_the_exact_peak() {
    for largest in [1000, 4 * MIB, 60 * MIB] {
        let (measured, peak, _) = run(1, 10_000, largest);
        assert_eq!(measured, peak, "up to {largest} bytes");
    }
}

#[test]
fn several_shards_have_it_within_a_mebibyte_for_each_after_the_first() {
    for count in 2..=4 {
        for largest in [1000, MIB / 2, 4 * MIB, 60 * MIB] {
            let (measured, peak, _) = run(count, 10_000, largest);
            let error = (count - 1) as i64 * MIB as i64;
            let context = format!("{count} shards, up to {largest} bytes: {measured} of {peak}");
            assert!((peak - error..=peak).contains(&measured), "{context}");
        }
    }
}

#[test]
fn the_peak_is_rarely_measured_below_it() {
    let (_, _, few) = run(4, 1000, MIB);
    let (_, _, many) = run(4, 10_000, MIB);
    println!("{few} measurements in 1000 steps, {many} in 10000");
    assert!(many < 1000, "{many} measurements");
}

#[test]
fn it_is_reset_for_all_and_starts_for_a_scope() {
    let mut levels: [Level; 2] = Default::default();
    let mut peaks = Peaks::default();
    levels[0].add(10);
    levels[0].subtract(8);
    levels[1].add(3);
    peaks.measure(levels.iter_mut());
    assert_eq!(peaks.settle(), 10);
    let scope = peaks.scope(5);
    levels[1].add(4);
    levels[1].subtract(4);
    peaks.measure(levels.iter_mut());
    assert_eq!((peaks.settle(), scope.load(Ordering::Relaxed)), (10, 9));
    peaks.reset(5);
    assert_eq!((peaks.settle(), scope.load(Ordering::Relaxed)), (5, 9));
}
