//! Collectives with the sizes that their members named: what travels from whom to whom, and by which algorithm.

use replay::{Container, Job, Loaded, Picos, Replay, Table};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use vef_format::container::{self, About, Note, Settings};
use vef_format::ids::Rank;
use vef_format::operation::OpCodes;
use vef_format::text::{Line, Reader};

/// Sender, receiver and bytes.
type Sent = (u32, u32, u64);

/// One collective of `members` on a communicator of all of them; `parts` are their amounts, by task, in the order of the file.
fn text(code: u16, parts: &[(u32, u64, u64)]) -> String {
    let tasks = parts.len();
    let mut text = format!("VEF3 {tasks} 0 1 1 {tasks} 0 1\nC0");
    (0..tasks).for_each(|task| text += &format!(" {task}"));
    for (task, send, recv) in parts {
        // The members enter in the order of the file.
        text += &format!("\nG0 C0 {code} {task} {send} {recv} 0 {} -1", task * 10);
    }
    text + "\n"
}

/// All messages of a trace, sorted.
fn messages(job: Job, table: &str) -> Vec<Sent> {
    let table = Table::from_toml(table).unwrap();
    let mut replay = Replay::builder().job(job).algorithms(table).build().unwrap();
    let mut sent = Vec::new();
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now).unwrap() {
            sent.push((message.src.0, message.dst.0, message.bytes.0));
            replay.delivered(message.id, now).unwrap();
        }
    }
    assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
    sent.sort_unstable();
    sent
}

/// The trace in every form in which it can be replayed.
fn jobs(text: &str, notes: &[(u32, Note<'_>)]) -> Vec<Job> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let reader = || Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let mut jobs = Vec::new();
    if notes.is_empty() {
        jobs.push(Job::open(file.path()).unwrap());
        jobs.push(Job::loaded(&Arc::new(Loaded::read(reader(), OpCodes::default()).unwrap())));
    }
    let mut reader = reader();
    let settings = Settings { compress: false, keep_order: true };
    let mut writer =
        container::Writer::new(Vec::new(), reader.header(), &About::default(), settings).unwrap();
    for (task, note) in notes {
        writer.note(Some(Rank(*task)), 0, note).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        match line {
            Line::Communicator { id, members } => writer.communicator(id, members).unwrap(),
            Line::Message(message) => writer.message(&message).unwrap(),
            Line::Collective(part) => writer.collective(&part).unwrap(),
        }
    }
    let bytes = writer.finish().unwrap();
    let container = container::Reader::from_bytes(bytes, Path::new("test.vefx")).unwrap();
    jobs.push(Job::container(Container::new(container).unwrap()));
    jobs
}

#[track_caller]
fn expect(text: &str, table: &str, expected: &[Sent]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    for job in jobs(text, &[]) {
        assert_eq!(messages(job, table), expected, "{text}{table}");
    }
}

/// Blocks of four members, as the tests below use them.
const BLOCKS: [u64; 4] = [7, 100_000, 0, 900_000];
const OTHERS: u64 = 100_000 + 900_000;

#[test]
fn scatterv_and_gatherv_move_each_members_block() {
    let linear = "gatherv = [{ algorithm = \"linear\" }]\nscatterv = [{ algorithm = \"linear\" }]";
    // A leaf enters first.
    let scatterv = text(9, &[(1, 0, 100_000), (0, OTHERS, 0), (2, 0, 0), (3, 0, 900_000)]);
    expect(&scatterv, linear, &[(0, 1, 100_000), (0, 3, 900_000)]);
    let gatherv = text(8, &[(3, 900_000, 0), (2, 0, 0), (1, 100_000, 0), (0, 0, OTHERS)]);
    expect(&gatherv, linear, &[(1, 0, 100_000), (3, 0, 900_000)]);
}

#[test]
fn allgatherv_and_reduce_scatter_move_each_members_block() {
    let total: u64 = BLOCKS.iter().sum();
    let parts = |reduce: bool| -> Vec<(u32, u64, u64)> {
        let amounts = |own| if reduce { (total, own) } else { (own, total) };
        (0..4).zip(BLOCKS).map(|(task, own)| (task, amounts(own).0, amounts(own).1)).collect()
    };
    // Round by round, each block goes around to the next rank.
    let ring: Vec<Sent> = (0..4u32)
        .flat_map(|block| (0..3).map(move |hop| ((block + hop) % 4, (block + hop + 1) % 4)))
        .zip(BLOCKS.iter().flat_map(|&bytes| [bytes; 3]))
        .map(|((src, dst), bytes)| (src, dst, bytes))
        .collect();
    let table = "allgatherv = [{ algorithm = \"ring\" }]";
    expect(&text(10, &parts(false)), table, &ring);
    // Everybody sends everybody else its block.
    let pairwise: Vec<Sent> = (0..4)
        .flat_map(|src| (0..4u32).zip(BLOCKS).map(move |(dst, bytes)| (src, dst, bytes)))
        .filter(|&(src, dst, _)| src != dst)
        .collect();
    expect(&text(13, &parts(true)), "reduce-scatter = [{ algorithm = \"pairwise\" }]", &pairwise);
}

#[test]
fn a_neighbour_alltoallv_sends_to_neighbours_alone() {
    let row = |rank: u32| -> Vec<u64> {
        (0..4).map(|to| if to == (rank + 1) % 4 { 1_000_000 } else { 0 }).collect()
    };
    let column = |rank: u32| -> Vec<u64> { (0..4).map(|from| row(from)[rank as usize]).collect() };
    let rows: Vec<(Vec<u64>, Vec<u64>)> = (0..4).map(|rank| (row(rank), column(rank))).collect();
    let notes: Vec<(u32, Note<'_>)> =
        (0..4).zip(&rows).map(|(task, (sent, received))| (task, Note::Counts { sent, received })).collect();
    for code in [11, 12] {
        let text = text(code, &[0, 1, 2, 3].map(|task| (task, 1_000_000, 1_000_000)));
        let expected: Vec<Sent> = (0..4).map(|src| (src, (src + 1) % 4, 1_000_000)).collect();
        let table = "alltoallv = [{ algorithm = \"linear\" }]";
        for job in jobs(&text, &notes) {
            assert_eq!(messages(job, table), expected);
        }
    }
}

#[test]
fn an_algorithm_that_a_table_names_is_played() {
    let gatherv = |root: u32| {
        let amounts = |task: u32| match task == root {
            true => (task, 0, BLOCKS.iter().sum::<u64>() - BLOCKS[task as usize]),
            false => (task, BLOCKS[task as usize], 0),
        };
        text(8, &[1, 3, 0, 2].map(amounts))
    };
    let [a, b, c, d] = BLOCKS;
    let by = |algorithm: &str| format!("gatherv = [{{ algorithm = \"{algorithm}\" }}]");
    // The binomial tree over 0, 1, 2, 3: 1 and 2 are children of 0, and 3 is one of 2.
    expect(&gatherv(0), &by("binomial"), &[(1, 0, b), (2, 0, c + d), (3, 2, d)]);
    // Two and two; of each pair the smaller one gives to the larger one, or to the root.
    expect(&gatherv(0), &by("traff"), &[(1, 0, b), (2, 3, c), (3, 0, c + d)]);
    expect(&gatherv(2), &by("traff"), &[(0, 1, a), (1, 2, a + b), (3, 2, d)]);
    // The tree over the root and the others, the largest first: 0, 3, 1, 2.
    expect(&gatherv(0), &by("sorted-binomial"), &[(3, 0, d), (1, 0, b + c), (2, 1, c)]);
    expect(&gatherv(0), &by("sorted-linear"), &[(1, 0, b), (3, 0, d)]);
    // The smallest first: 0, 2, 1, 3.
    let ascending = "gatherv = [{ algorithm = \"sorted-binomial\", order = \"ascending\" }]";
    expect(&gatherv(0), ascending, &[(2, 0, c), (1, 0, b + d), (3, 1, d)]);
}

#[test]
fn the_order_of_a_sorted_algorithm_is_that_of_the_messages() {
    let parts: Vec<(u32, u64, u64)> = (0..4)
        .map(|task| if task == 0 { (0, OTHERS, 0) } else { (task, 0, BLOCKS[task as usize]) })
        .collect();
    let text = text(9, &parts);
    for (order, receivers) in [("descending", [3, 1]), ("ascending", [1, 3])] {
        let table = format!("scatterv = [{{ algorithm = \"sorted-linear\", order = \"{order}\" }}]");
        for job in jobs(&text, &[]) {
            let table = Table::from_toml(&table).unwrap();
            let mut replay = Replay::builder().job(job).algorithms(table).build().unwrap();
            let mut to = Vec::new();
            while let Some(message) = replay.pop_ready(Picos(0)).unwrap() {
                to.push(message.dst.0);
            }
            assert_eq!(to, receivers, "{order}");
        }
    }
}
