//! Several partitions of one replay, advanced by one loop.

use super::naive::{departure, flight};
use replay::{Engine, LiveId, Message, Next, Picos, ReplayError, Wake};
use std::collections::BTreeMap;

/// What happens next, and in which partition.
#[derive(Clone, Copy)]
enum Event {
    Sent(usize, LiveId),
    /// A message arrives; the partition and the id under which its sender waits for that.
    Arrival(usize, LiveId, Option<(usize, LiveId)>),
    Wake(usize, Wake),
}

/// A call of an engine, and what follows from it.
type Call<'a> = dyn FnMut(&mut Engine, &mut Vec<Next>) -> Result<(), ReplayError> + 'a;

/// Runs all partitions, of which that of a node is its number modulo their number; gives the messages.
pub(crate) fn run(engines: &mut [Engine], report_sent: bool) -> Vec<Message> {
    let parts = engines.len() as u32;
    let mut events: BTreeMap<(Picos, usize), Event> = BTreeMap::new();
    let (mut seen, mut count) = (Vec::new(), 0);
    let mut push = |events: &mut BTreeMap<_, _>, at, event| {
        count += 1;
        events.insert((at, count), event);
    };
    let mut call = |engines: &mut [Engine],
                    events: &mut BTreeMap<(Picos, usize), Event>,
                    part: usize,
                    call: &mut Call<'_>| {
        let mut follows = Vec::new();
        call(&mut engines[part], &mut follows).unwrap();
        for next in follows {
            let message = match next {
                Next::Message(message) => message,
                Next::Wake(wake) => {
                    push(events, wake.at, Event::Wake(part, wake));
                    continue;
                }
                Next::Inside { .. } => panic!("every task is on its own node"),
            };
            seen.push(message);
            let (src, dst) = (message.src.0, message.dst.0);
            let to = (message.dst_node % parts) as usize;
            let (mut id, mut ack) = (message.id, None);
            if to != part {
                refuses_strangers(&mut engines[part], message);
                let parcel = engines[part].export(message.id).unwrap();
                ack = parcel.is_incomplete().then_some((part, message.id));
                id = engines[to].import(replay::Parcel::from_raw(parcel.to_raw())).unwrap();
            }
            if report_sent && (to == part || ack.is_some()) {
                push(events, Picos(message.start.0 + departure(src, dst)), Event::Sent(part, message.id));
                ack = None;
            }
            push(events, Picos(message.start.0 + flight(src, dst)), Event::Arrival(to, id, ack));
        }
    };
    for part in 0..engines.len() {
        call(engines, &mut events, part, &mut |engine, follows| engine.begin(follows));
    }
    while let Some(((now, _), event)) = events.pop_first() {
        match event {
            Event::Sent(part, id) => {
                call(engines, &mut events, part, &mut |engine, follows| engine.sent(id, now, follows));
            }
            Event::Arrival(part, id, ack) => {
                call(engines, &mut events, part, &mut |engine, follows| engine.delivered(id, now, follows));
                if let Some((part, id)) = ack {
                    call(engines, &mut events, part, &mut |engine, follows| {
                        engine.delivered(id, now, follows)
                    });
                }
            }
            Event::Wake(part, wake) => {
                call(engines, &mut events, part, &mut |engine, follows| engine.wake(wake, now, follows));
            }
        }
    }
    seen
}

/// A message that leaves its partition cannot be delivered there.
fn refuses_strangers(engine: &mut Engine, message: Message) {
    let refused = engine.delivered(message.id, message.start, &mut |_| panic!("nothing follows"));
    assert!(matches!(refused, Err(ReplayError::NotExported { .. })));
}
