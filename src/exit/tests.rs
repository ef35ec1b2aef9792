use std::panic::catch_unwind;

use super::*;
#[cfg(target_os = "linux")]
use zeusm_process::testing::in_child;

fn depth() -> usize {
    INSIDE.get().depth
}

#[test]
fn a_call_outside_of_sections_is_in_none() {
    let (one, two) = (Section::enter(), Section::enter());
    assert_eq!(depth(), 2);
    assert_eq!(Section::outside(depth), 0);
    let panicked = catch_unwind(|| Section::outside(|| panic!("the test's panic")));
    assert!(panicked.is_err());
    assert_eq!(depth(), 2);
    drop((one, two));
    assert_eq!(depth(), 0);
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn a_call_outside_of_sections_may_end_and_enter_some() {
    in_child(|| {
        let (one, two) = (Section::enter(), Section::enter());
        let sections = one.sections;
        let count = || sections.load(Ordering::SeqCst);
        let three = Section::outside(|| {
            let three = Section::enter();
            Section::outside(|| drop(one));
            three
        });
        assert_eq!((depth(), count()), (2, 2));
        drop((two, three));
        assert_eq!((depth(), count()), (0, 0));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_does_not_count_the_sections_of_its_parent() {
    let outer = Section::enter();
    in_child(|| {
        Section::outside(|| ());
        let inner = Section::enter();
        assert_eq!(Section::outside(depth), 0);
        drop(inner);
        let sections = SECTIONS.get_or_default();
        assert_eq!(sections.load(Ordering::SeqCst), 0);
        // The end of the one that the child inherited.
        drop(Section {
            sections: outer.sections,
            of_thread: PhantomData,
        });
        assert_eq!(sections.load(Ordering::SeqCst), 0);
        assert_eq!(Inside::of(sections).depth, 0);
    });
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn the_exit_does_not_wait_for_a_section_of_its_own_thread() {
    in_child(|| {
        let _section = Section::enter();
        let begin = Instant::now();
        wait();
        assert!(begin.elapsed() < TIMEOUT / 2);
    });
}
