//! Closed forms: who is complete when.

use replay::CommId;

use super::*;

/// What members enter, and when they are complete: 1000 bytes take 1 µs, the latency is 2 µs.
fn completions(operation: Operation, root: u32, entries: &[(u32, u64, [u64; 2])]) -> Vec<(u32, u64)> {
    on_nodes(1, operation, root, entries)
}

/// The same, with so many members on each node.
fn on_nodes(
    per_node: u32,
    operation: Operation,
    root: u32,
    entries: &[(u32, u64, [u64; 2])],
) -> Vec<(u32, u64)> {
    let ranks = entries.len() as u32;
    let entries = entries.iter().map(|&(member, at, bytes)| (7, member, at, bytes));
    let ends = all_completions(per_node, operation, root, ranks, entries);
    ends.into_iter().map(|(_, member, at)| (member, at)).collect()
}

/// Of several collectives, in the order in which the entries are read: collective, member, microseconds, bytes.
fn all_completions(
    per_node: u32,
    operation: Operation,
    root: u32,
    ranks: u32,
    entries: impl IntoIterator<Item = (u64, u32, u64, [u64; 2])>,
) -> Vec<(u64, u32, u64)> {
    let mut network = InNetwork::new(Picos(2_000_000), "1GB/s".parse().unwrap());
    for (id, member, at, bytes) in entries {
        network.enter(&Collective {
            job: 0,
            id: CollectiveId(id),
            comm: CommId(0),
            operation,
            root,
            ranks,
            at: Picos(at * 1_000_000),
            member: Some(member),
            node: Some(member / per_node),
            bytes: bytes.map(Bytes),
        });
    }
    let nodes = |_, _| (0..ranks).map(|member| member / per_node).collect();
    let steps: Vec<_> = std::iter::from_fn(|| network.step(Picos::MAX, nodes).unwrap()).collect();
    assert!(network.open.is_empty());
    let end = |(at, completed): (Picos, Option<Completed>)| {
        completed.map(|completed| (completed.collective.1.0, completed.member, at.0 / 1_000_000))
    };
    steps.into_iter().filter_map(end).collect()
}

#[test]
fn members_wait_for_those_of_which_they_need_data() {
    use Operation::{Allreduce, Barrier, Bcast, Reduce, Scan};
    let none = [0, 0];
    assert_eq!(
        completions(Barrier, 0, &[(0, 1, none), (2, 9, none), (1, 3, none)]),
        [(0, 11), (1, 11), (2, 11)]
    );
    let both = [3000, 3000];
    assert_eq!(completions(Allreduce, 0, &[(0, 1, both), (1, 4, both)]), [(0, 9), (1, 9)]);
    // The root is complete when it has sent; who comes late finds the data there.
    let bcast = [(2, 0, [0, 1000]), (1, 5, [1000, 0]), (0, 20, [0, 1000])];
    assert_eq!(completions(Bcast, 1, &bcast), [(1, 6), (2, 8), (0, 20)]);
    let reduce = [(0, 0, [1000, 0]), (1, 1, [0, 1000]), (2, 9, [1000, 0])];
    assert_eq!(completions(Reduce, 1, &reduce), [(0, 1), (2, 10), (1, 12)]);
    assert_eq!(completions(Scan, 0, &[(1, 1, none), (0, 3, none), (2, 0, none)]), [(0, 5), (1, 5), (2, 5)]);
    assert_eq!(completions(Scan, 0, &[(0, 0, none), (2, 1, none), (1, 9, none)]), [(0, 2), (1, 11), (2, 11)]);
}

/// Two members on each of two nodes.
#[test]
fn tasks_of_a_node_share_its_link() {
    use Operation::{Allgather, Allreduce, Alltoall, Bcast, Gather, Scatter};
    let all = |operation, bytes| on_nodes(2, operation, 0, &[0, 1, 2, 3].map(|member| (member, 0, bytes)));
    let each = |at: u64| [0, 1, 2, 3].map(|member| (member, at)).to_vec();
    // Half of the blocks are for the other node: two members send 2000 bytes each there.
    assert_eq!(all(Alltoall, [4000, 4000]), each(2 + 4));
    // Reduced in the node.
    assert_eq!(all(Allreduce, [3000, 3000]), each(2 + 3));
    // Both send 3000 bytes; the 6000 of the other node come once.
    assert_eq!(all(Allgather, [3000, 12000]), each(2 + 6));
    let bcast = [(0, 0, [1000, 0]), (1, 0, [0, 1000]), (2, 0, [0, 1000]), (3, 0, [0, 1000])];
    assert_eq!(on_nodes(2, Bcast, 0, &bcast), [(0, 1), (1, 2), (2, 3), (3, 3)]);
    let scatter = [(0, 0, [3000, 0]), (1, 0, [0, 1000]), (2, 0, [0, 1000]), (3, 0, [0, 1000])];
    // The root sends two of three blocks, during which the others receive; the third is for its own node.
    assert_eq!(on_nodes(2, Scatter, 0, &scatter), [(0, 2), (1, 2), (2, 4), (3, 4)]);
    let gather = [(0, 0, [0, 3000]), (1, 0, [1000, 0]), (2, 0, [1000, 0]), (3, 0, [1000, 0])];
    assert_eq!(on_nodes(2, Gather, 0, &gather), [(1, 0), (2, 1), (3, 2), (0, 4)]);
    assert_eq!(on_nodes(1, Gather, 0, &gather), [(1, 1), (2, 1), (3, 1), (0, 5)]);
    // Within a node nothing goes over its link.
    let within = |operation, bytes| on_nodes(4, operation, 0, &[0, 1, 2, 3].map(|member| (member, 0, bytes)));
    assert_eq!(within(Allreduce, [3000, 3000]), each(2));
    assert_eq!(within(Allgather, [3000, 12000]), each(2));
    assert_eq!(completions(Allreduce, 0, &[(0, 1, [3000, 3000])]), [(0, 3)]);
}

/// Of different collectives, too; who sends nothing does not wait for the link.
#[test]
fn collectives_of_a_node_share_its_link() {
    let entry = |id, bytes| [0, 1].map(|member| (id, member, 0, [bytes; 2]));
    let entries = [entry(1, 1000), entry(2, 1000), entry(9, 0)].concat();
    let ends = all_completions(1, Operation::Allreduce, 0, 2, entries);
    assert_eq!(ends, [(9, 0, 2), (9, 1, 2), (1, 0, 3), (1, 1, 3), (2, 0, 4), (2, 1, 4)]);
}

/// In the order of their entries, also if the later one is read first.
#[test]
fn a_collective_does_not_wait_for_one_that_is_entered_later() {
    let entry = |id, at| [0, 1].map(|member| (id, member, at, [3000; 2]));
    for entries in [[entry(1, 50), entry(2, 0)], [entry(2, 0), entry(1, 50)]] {
        let ends = all_completions(1, Operation::Allreduce, 0, 2, entries.concat());
        assert_eq!(ends, [(2, 0, 5), (2, 1, 5), (1, 0, 55), (1, 1, 55)]);
        // In a scan, too: the last member sends when it enters, whenever the others come.
        let ends = all_completions(1, Operation::Scan, 0, 2, entries.concat());
        assert_eq!(ends, [(2, 0, 2), (2, 1, 5), (1, 0, 52), (1, 1, 55)]);
    }
}

/// Data for members of the same node does not use its link: it is there without the time of its bytes.
#[test]
fn data_with_a_root_stays_within_its_node() {
    use Operation::{Bcast, Gather, Reduce, Scan, Scatter};
    let [out, into] = [[3000, 0], [0, 3000]];
    let to_root = [(0, 0, into), (1, 0, out), (2, 0, out), (3, 0, out)];
    let from_root = [(0, 0, out), (1, 0, into), (2, 0, into), (3, 0, into)];
    for operation in [Gather, Reduce] {
        let ends = on_nodes(4, operation, 0, &to_root);
        assert_eq!(ends, [(1, 0), (2, 0), (3, 0), (0, 2)], "{operation}");
    }
    for operation in [Bcast, Scatter] {
        let ends = on_nodes(4, operation, 0, &from_root);
        assert_eq!(ends, [(0, 0), (1, 2), (2, 2), (3, 2)], "{operation}");
    }
    assert_eq!(
        on_nodes(4, Scan, 0, &[0, 1, 2, 3].map(|member| (member, 0, [3000; 2]))),
        [0, 1, 2, 3].map(|member| (member, 2))
    );
    // Of two nodes, member 1 is on that of the root.
    assert_eq!(on_nodes(2, Reduce, 0, &to_root), [(1, 0), (2, 3), (3, 3), (0, 5)]);
    assert_eq!(on_nodes(2, Bcast, 0, &from_root), [(1, 2), (0, 3), (2, 5), (3, 5)]);
    // Members 0 and 1 send, 2 and 3 receive.
    assert_eq!(
        on_nodes(2, Scan, 0, &[0, 1, 2, 3].map(|member| (member, 0, [3000; 2]))),
        [(0, 2), (1, 2), (2, 5), (3, 5)]
    );
}
