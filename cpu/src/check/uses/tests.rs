use std::time::{Duration, Instant};

use smallvec::smallvec;

use super::*;

fn copy(from: Range<usize>, to: Range<usize>) -> Uses {
    Uses {
        reads: smallvec![from],
        writes: smallvec![to],
        ..Uses::default()
    }
}

#[test]
fn a_conflict_needs_a_write() {
    let kernel = |pointer| Uses {
        pointers: smallvec![pointer],
        ..Uses::default()
    };
    let (a, b, c) = (0..10, 20..30, 40..50);
    assert_eq!(
        copy(a.clone(), b.clone()).conflict(&copy(a.clone(), c.clone())),
        None
    );
    assert_eq!(
        copy(a.clone(), b.clone()).conflict(&copy(25..28, c.clone())),
        Some(25)
    );
    assert_eq!(
        copy(25..28, c).conflict(&copy(a.clone(), b.clone())),
        Some(25)
    );
    assert_eq!(kernel(20).conflict(&kernel(20)), None);
    assert_eq!(kernel(20).conflict(&copy(a.clone(), b.clone())), Some(20));
    assert_eq!(kernel(5).conflict(&copy(a, b)), None);
}

#[test]
fn a_copy_overlaps_unless_it_is_onto_itself() {
    assert_eq!(copy(0..10, 9..19).overlap(), Some(9));
    assert_eq!(copy(9..19, 0..10).overlap(), Some(9));
    assert_eq!(copy(0..10, 10..20).overlap(), None);
    assert_eq!(copy(0..10, 0..10).overlap(), None);
}

#[test]
fn a_copy_of_no_bytes_accesses_none() {
    let (none, all) = (copy(15..15, 25..25), copy(10..20, 20..30));
    assert_eq!(none.conflict(&all), None);
    assert_eq!(all.conflict(&none), None);
    assert!(!none.touches(&(0..100)));
    assert!(all.touches(&(0..100)));
}

#[test]
fn two_copies_of_many_rows_are_compared_in_one_pass() {
    const ROWS: usize = 40_000;
    // Rows of 4 bytes of arrays with 16 bytes in a row.
    let copy = |from: usize, to: usize| {
        let rows = |base| (0..ROWS).map(move |row| base + 16 * row..base + 16 * row + 4);
        Uses {
            reads: rows(from).collect(),
            writes: rows(to).collect(),
            ..Uses::default()
        }
    };
    let far = 32 * ROWS;
    let begin = Instant::now();
    assert_eq!(copy(0, far).conflict(&copy(4, far + 4)), None);
    assert_eq!(copy(0, far).conflict(&copy(8, far + 5)), None);
    let last = 16 * (ROWS - 1);
    assert_eq!(
        copy(0, far).conflict(&copy(far + 3 + last, 8)),
        Some(far + 3 + last)
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
}
