#![allow(clippy::unwrap_used)]

use super::*;

fn span(address: usize, end: usize) -> Span {
    let mut span = Span::new(address, 0).unwrap();
    span.end = end;
    span
}

#[test]
fn a_pointer_may_be_the_end_of_what_another_one_points_into() {
    let touching = || [span(64, 128), span(128, 256)];
    let noted = |spans: &[Span]| spans.iter().map(|it| it.may_be_end).collect::<Vec<_>>();
    let mut both = touching();
    Span::note_ends(&mut both);
    assert_eq!(noted(&both), [false, true]);
    let mut apart = [span(64, 128), span(192, 256)];
    Span::note_ends(&mut apart);
    assert_eq!(noted(&apart), [false, false]);
    Span::note_ends(&mut touching()[..1]);
}
