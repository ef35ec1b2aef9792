use std::panic::catch_unwind;

use super::*;
#[cfg(target_os = "linux")]
use zeusm_process::testing::in_child;

fn is_inside() -> bool {
    is_counted(SECTIONS.get_or_default())
}

#[test]
fn a_call_outside_of_sections_is_in_none() {
    inside(|| {
        inside(|| assert!(!outside(is_inside)));
        let panicked = catch_unwind(|| outside(|| panic!("the test's panic")));
        assert!(panicked.is_err());
        assert!(is_inside());
    });
    assert!(!is_inside());
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn a_thread_is_counted_once() {
    in_child(|| {
        let count = || SECTIONS.get_or_default().load(Ordering::SeqCst);
        let counts = inside(|| {
            let within = inside(count);
            let nested = outside(|| (count(), inside(count), count()));
            (within, nested, count())
        });
        assert_eq!(counts, (1, (0, 1, 0), 1));
        assert_eq!(count(), 0);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_does_not_count_the_sections_of_its_parent() {
    inside(|| {
        in_child(|| {
            let count = || SECTIONS.get_or_default().load(Ordering::SeqCst);
            outside(|| ());
            assert!(!is_inside());
            inside(|| assert_eq!((count(), outside(is_inside)), (1, false)));
            // The end of the section that the child inherited.
            drop(Back(false));
            assert_eq!(count(), 0);
        });
    });
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn the_exit_does_not_wait_for_a_section_of_its_own_thread() {
    in_child(|| {
        inside(|| {
            let begin = Instant::now();
            wait();
            assert!(begin.elapsed() < TIMEOUT / 2);
        });
    });
}
