use super::*;

fn place(stream: usize, order: &str) -> Place {
    Place {
        stream,
        follows_all: order == "barrier" || order == "after",
        holds_later: order == "barrier",
    }
}

/// Adds a command that accesses memory; returns its number and those before it.
fn add(
    commands: &mut Commands,
    place: Place,
    waits: &[usize],
    signal: Option<usize>,
) -> (u64, Vec<u64>) {
    let waits = waits.iter().map(|signal| Wait {
        signal: *signal,
        is_open: !commands.events.contains_key(signal),
    });
    let waits: Vec<_> = waits.collect();
    let (ordered, _) = commands.order(place, waits.into_iter(), || signal);
    if let Some(signal) = signal {
        commands.resolve_signal(signal, &ordered);
    }
    commands.add(Command {
        uses: Uses {
            what: "a command".to_owned(),
            ..Uses::default()
        },
        stack: Stack::default(),
        thread: 0,
        signal,
        before: ordered.before.clone(),
        held: ordered.held,
    });
    (commands.next, ordered.before.into_iter().collect())
}

#[test]
fn order_follows_streams_barriers_events_and_the_host() {
    let mut all = Commands::default();
    let (a, before) = add(&mut all, place(1, ""), &[], Some(100));
    assert!(before.is_empty());
    let (b, before) = add(&mut all, place(1, ""), &[], None);
    assert!(before.is_empty());
    let (c, before) = add(&mut all, place(1, "barrier"), &[], Some(101));
    assert_eq!(before, [a, b]);
    let (d, before) = add(&mut all, place(1, ""), &[], None);
    assert_eq!(before, [a, b, c]);
    // Another stream, which waits for one command of the first.
    let (e, before) = add(&mut all, place(2, ""), &[100], None);
    assert_eq!(before, [a]);
    let (f, before) = add(&mut all, place(2, ""), &[101], Some(102));
    assert_eq!(before, [a, b, c]);
    // The host waits for that, and knows of the end of what was before.
    let done = all.events[&102].clone();
    all.complete(&done);
    assert_eq!(all.pending.keys().copied().collect::<Vec<_>>(), [d, e]);
    let (_, before) = add(&mut all, place(2, "after"), &[101], None);
    assert_eq!(before, [e]);
    assert!(f > e);
}

#[test]
fn many_events_and_streams_later_the_commands_in_flight_are_known() {
    let mut all = Commands::default();
    let (a, _) = add(&mut all, place(1, "barrier"), &[], Some(100));
    for number in 1000..1000 + 2 * MOST_KNOWN {
        // Those of barriers, which are not in the table.
        all.order(place(number, "barrier"), [].into_iter(), || Some(number));
    }
    assert!(all.events.len() + all.streams.len() <= MOST_KNOWN + 2);
    let (b, before) = add(&mut all, place(2, ""), &[100], None);
    assert_eq!(before, [a]);
    let (_, before) = add(&mut all, place(1, ""), &[], None);
    assert_eq!(before, [a]);
    assert!(b > a);
}

#[test]
fn a_command_that_waits_for_a_later_one_is_after_it() {
    let mut all = Commands::default();
    let held = |all: &Commands, number: u64| all.pending[&number].held.len();
    // The first waits for 100, which the host sets, the next for 200, which the last command sets.
    let (a, _) = add(&mut all, place(1, ""), &[100], Some(101));
    let (b, before) = add(&mut all, place(2, ""), &[101, 200], Some(102));
    assert_eq!(before, [a]);
    assert_eq!((held(&all, a), held(&all, b)), (1, 2));
    let (c, before) = add(&mut all, place(3, ""), &[], Some(200));
    assert!(before.is_empty());
    assert_eq!((held(&all, b), held(&all, c)), (1, 0));
    // What waits for the second is after the last, too.
    let (d, before) = add(&mut all, place(4, ""), &[102], None);
    assert_eq!(before, [a, b, c]);
    assert_eq!(held(&all, d), 1);
    let nothing = Ordered::default();
    assert_eq!(all.resolve_signal(100, &nothing).len(), 3);
    assert!([a, b, c, d].iter().all(|it| held(&all, *it) == 0));
}

#[test]
fn a_race_is_found_when_both_commands_can_run_in_no_order() {
    let mut all = Commands::default();
    let write = |all: &mut Commands, stream, wait: &[usize], signal| {
        let (number, _) = add(all, place(stream, ""), wait, signal);
        let uses = &mut all.pending.get_mut(&number).expect("in the table").uses;
        uses.writes.push(0..8);
        number
    };
    // Two that wait for the host, and one after the second.
    let a = write(&mut all, 1, &[100], None);
    let b = write(&mut all, 2, &[200], Some(201));
    let c = write(&mut all, 3, &[201], None);
    assert!(all.races(&Set::from([a, b, c])).is_empty());
    let nothing = Ordered::default();
    let new = all.resolve_signal(200, &nothing);
    assert_eq!(new, Set::from([b, c]));
    assert!(all.races(&new).is_empty());
    let new = all.resolve_signal(100, &nothing);
    assert_eq!(all.races(&new).len(), 1);
    // One that is complete races with none.
    let d = write(&mut all, 4, &[300], None);
    all.complete(&Set::from([a, b, c]));
    let new = all.resolve_signal(300, &nothing);
    assert_eq!(new, Set::from([d]));
    assert!(all.races(&new).is_empty());
    // A command that sets a signal is before those that it held.
    let e = write(&mut all, 5, &[400], None);
    all.complete(&Set::from([d]));
    let f = write(&mut all, 6, &[], Some(400));
    assert!(all.races(&Set::from([e, f])).is_empty());
}
