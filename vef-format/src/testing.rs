//! Generators shared by the tests of several modules.

use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, Header, LocalCollective, Message, Record, Version};
use crate::units::{Bytes, Picos, Ticks};
use proptest::prelude::*;

fn dependency() -> impl Strategy<Value = Dependency> {
    prop_oneof![
        Just(Dependency::Start),
        number().prop_map(|id| Dependency::Sent(MessageId(id))),
        number().prop_map(|id| Dependency::Received(MessageId(id))),
        number().prop_map(|id| Dependency::Collective(CollectiveId(id))),
    ]
}

/// Numbers of all lengths.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift)
}

fn record(tasks: u32) -> impl Strategy<Value = Record> {
    let communicator =
        (any::<u32>(), proptest::collection::vec((0..tasks).prop_map(Rank), 1..=(tasks as usize).min(40)))
            .prop_map(|(id, members)| Record::Communicator { id: CommId(id), members });
    let message = (number(), 0..tasks, 0..tasks, number(), any::<bool>(), dependency(), number()).prop_map(
        |(id, src, dst, bytes, awaited, after, time)| {
            Record::Message(Message {
                id: MessageId(id),
                src: Rank(src),
                dst: Rank(dst),
                bytes: Bytes(bytes),
                awaited,
                after,
                time: Ticks(time),
            })
        },
    );
    let collective =
        (number(), any::<u32>(), any::<u16>(), 0..tasks, number(), number(), dependency(), number())
            .prop_map(|(id, comm, op, task, send, recv, after, time)| {
                Record::Collective(LocalCollective {
                    id: CollectiveId(id),
                    comm: CommId(comm),
                    op: OpCode(op),
                    task: Rank(task),
                    amounts: Amounts { send: Bytes(send), recv: Bytes(recv) },
                    after,
                    time: Ticks(time),
                })
            });
    prop_oneof![1 => communicator, 5 => message, 2 => collective]
}

prop_compose! {
    /// Any trace that the grammar allows, consistent or not.
    pub(crate) fn trace()(tasks in 1u32..3000)(
        records in proptest::collection::vec(record(tasks), 0..60),
        tasks in Just(tasks),
        collectives in number(),
        clock in 1..=u64::MAX,
    ) -> (Header, Vec<Record>) {
        let count = |kind: fn(&Record) -> bool| records.iter().filter(|record| kind(record)).count() as u64;
        let header = Header {
            version: Version::V3,
            tasks,
            messages: count(|record| matches!(record, Record::Message(_))),
            communicators: count(|record| matches!(record, Record::Communicator { .. })),
            collectives,
            local_collectives: count(|record| matches!(record, Record::Collective(_))),
            received: 0,
            clock: Picos(clock),
        };
        (header, records)
    }
}
