//! How much memory open instances of a job take.

use replay::{Container, Engine, Job, Next, Picos};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vef_format::container::{About, Reader, Settings, Writer};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCodes, Operation};
use vef_format::record::{Dependency, Header, LocalCollective, Message};
use vef_format::units::{Bytes, Ticks};

/// Bytes that are allocated.
static HELD: AtomicUsize = AtomicUsize::new(0);

struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;

// SAFETY: every call is passed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

const TASKS: u32 = 8;
const RECORDS: u64 = 400;

/// Messages around a ring behind a barrier of all tasks, in blocks of some kilobytes; and communicators that most replays do not need.
fn container() -> Container {
    let header = Header {
        tasks: TASKS,
        messages: u64::from(TASKS) * RECORDS,
        communicators: 300,
        collectives: 1,
        local_collectives: TASKS.into(),
        clock: Picos(1000),
        ..Header::default()
    };
    let settings = Settings { compress: false, keep_order: false };
    let mut writer = Writer::new(Vec::new(), &header, &About::default(), settings).unwrap();
    let members: Vec<Rank> = (0..TASKS).map(Rank).collect();
    for comm in 0..300 {
        writer.communicator(CommId(comm), &members).unwrap();
    }
    let op = OpCodes::default().code(Operation::Barrier).unwrap();
    for task in (0..TASKS).map(Rank) {
        let (id, comm, amounts) = (CollectiveId(0), CommId(0), Amounts::default());
        let (after, time) = (Dependency::Start, Ticks(1));
        writer.collective(&LocalCollective { id, comm, op, task, amounts, after, time }).unwrap();
    }
    for id in 0..u64::from(TASKS) * RECORDS {
        let (src, dst) = (Rank((id % u64::from(TASKS)) as u32), Rank(((id + 1) % u64::from(TASKS)) as u32));
        let (id, bytes, after, time) = (MessageId(id), Bytes(8192), Dependency::Start, Ticks(1 << 30));
        writer.message(&Message { id, src, dst, bytes, awaited: false, after, time }).unwrap();
    }
    Container::new(Reader::from_bytes(writer.finish().unwrap(), Path::new("ring.vefx")).unwrap()).unwrap()
}

#[test]
fn open_instances_share_what_they_read() {
    const INSTANCES: usize = 1000;
    let mut engine = Engine::builder().job(Job::container(container()).on_call()).engine().unwrap();
    engine.begin(&mut |_: Next| {}).unwrap();
    let nodes: Vec<u32> = (0..TASKS).collect();
    // What all of them share.
    engine.open(0, &nodes, Picos(0), &mut |_: Next| {}).unwrap();
    let before = HELD.load(Relaxed);
    for _ in 0..INSTANCES {
        engine.open(0, &nodes, Picos(0), &mut |_: Next| {}).unwrap();
    }
    let each = (HELD.load(Relaxed) - before) / INSTANCES;
    // 186 kB are windows of its own on the records of its tasks. Neither a buffer for a whole block nor the communicators are its own.
    assert!(each < 207_000, "{each} bytes");
}
