//! Files: what is asked of which storage server, and the collectives by which the ranks agree on a file.

use crate::capture::{self, Program, WORLD, What};
use mixer::{IoServers, Options, Quiet, Summary, mix};
use vef_format::capture::RankInfo;
use vef_format::capture::event::*;
use vef_format::operation::Operation;
use vef_format::units::Bytes;

const FILE: FileId = FileId(3);
/// FNV-1a of the file's name is 0xe40c292c (its authors' test vector), which is 1 more than a multiple of 3: the first stripe is on the second
/// server, which is task 3 behind two ranks; the others are on tasks 4 and 3 by turns.
const NAME: &str = "a";
const SERVERS: IoServers = IoServers { count: 3, stripe: Bytes(10), width: 2 };

fn call(program: &mut Program, task: u32, function: &'static str, bytes: u64, detail: Detail<'static>) {
    program.add(task, 0, What::By(function, Action::Other { bytes: Bytes(bytes), detail }));
}

fn open(program: &mut Program) {
    for task in 0..program.tasks.len() as u32 {
        call(
            program,
            task,
            "MPI_File_open",
            0,
            Detail::FileOpen { id: FILE, comm: WORLD, mode: 0, name: NAME },
        );
    }
}

fn access(offset: Option<i64>, write: bool, collective: bool, request: Option<u64>) -> Detail<'static> {
    let request = request.map(|number| RequestId { thread: 0, number });
    Detail::Io(Io { file: FILE, offset, write, collective, request })
}

/// The fields of the trace's lines, and the summary.
fn mixed(program: &Program, io: Option<IoServers>, library: &str) -> (Vec<Vec<String>>, Summary) {
    let dir = tempfile::tempdir().unwrap();
    let facts = |_| RankInfo { library: library.into(), ..RankInfo::default() };
    capture::write_with(dir.path(), &program.tasks, facts);
    let trace = dir.path().join("t.vef");
    let summary = mix(dir.path(), &trace, &Options { io, ..Options::default() }, &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    (text.lines().skip(1).map(|line| line.split(' ').map(str::to_owned).collect()).collect(), summary)
}

/// Source, destination and bytes of the messages between two tasks, in the order of each source.
fn messages(lines: &[Vec<String>], source: u32) -> Vec<(u32, u64)> {
    let of_source = |line: &&Vec<String>| {
        !line[0].starts_with(['C', 'G']) && line[1] == source.to_string() && line[1] != line[2]
    };
    lines.iter().filter(of_source).map(|line| (line[2].parse().unwrap(), line[3].parse().unwrap())).collect()
}

/// Operation, and bytes sent and received, of the collectives of a task.
fn agreements(lines: &[Vec<String>], task: &str) -> Vec<[u64; 3]> {
    let of_task = lines.iter().filter(|line| line[0].starts_with('G') && line[3] == task);
    of_task.map(|line| [2, 4, 5].map(|at| line[at].parse().unwrap())).collect()
}

#[test]
fn each_access_is_of_the_servers_of_its_bytes() {
    let mut program = Program::new(2);
    open(&mut program);
    let read = |program: &mut Program, offset, bytes| {
        call(program, 0, "MPI_File_read", bytes, access(offset, false, false, None));
    };
    let view = |program: &mut Program, displacement, unit| {
        let detail = Detail::FileView { file: FILE, displacement, unit: Bytes(unit) };
        call(program, 0, "MPI_File_set_view", 0, detail);
        call(
            program,
            1,
            "MPI_File_set_view",
            0,
            Detail::FileView { file: FILE, displacement: 0, unit: Bytes(1) },
        );
    };
    // Bytes 0 to 8, 8 to 25.
    read(&mut program, None, 8);
    read(&mut program, None, 17);
    // Bytes 5 to 12, as the view moves and sets back the position; then 5 + 3·4 = 17 to 27, which moves nothing, and 12 to 13.
    view(&mut program, 5, 4);
    read(&mut program, None, 7);
    call(&mut program, 0, "MPI_File_write_at", 10, access(Some(3), true, false, None));
    read(&mut program, None, 1);
    call(&mut program, 0, "MPI_File_close", 0, Detail::FileClose(FILE));
    call(&mut program, 1, "MPI_File_close", 0, Detail::FileClose(FILE));
    program.finish();
    let (lines, summary) = mixed(&program, Some(SERVERS), "");
    // A request to read is without data, as is the answer to one to write.
    let asked = [(3, 0), (3, 0), (4, 0), (3, 0), (4, 0), (3, 7), (4, 3), (4, 0)];
    assert_eq!(messages(&lines, 0), asked);
    assert_eq!(messages(&lines, 3), [(0, 8), (0, 2 + 5), (0, 5), (0, 0)]);
    assert_eq!(messages(&lines, 4), [(0, 10), (0, 2), (0, 0), (0, 1)]);
    assert_eq!((messages(&lines, 1), messages(&lines, 2)), (vec![], vec![]));
    // MPICH: an id for the file, the view, the end. All ranks make their part.
    let expected = [[2, 260, 260], [0, 4, 0], [2, 4, 4], [6, 0, 0], [6, 0, 0]];
    assert_eq!(agreements(&lines, "0"), expected);
    assert_eq!(agreements(&lines, "1").len(), 5);
    assert_eq!(summary.agreements, 2 * 5);
    assert!(summary.not_representable.is_empty(), "{:?}", summary.not_representable);
}

/// What depends on the answer: the next record if the access blocks, otherwise the mark of the wait for it.
#[test]
fn answers_are_awaited_where_the_access_completes() {
    let mut program = Program::new(2);
    open(&mut program);
    call(&mut program, 0, "MPI_File_iread", 8, access(Some(0), false, false, Some(0)));
    program.send(0, 1, 0, 5).receive(1, 0, 0);
    program.complete(0, 0, Outcome::Done);
    program.send(0, 1, 0, 6).receive(1, 0, 0).finish();
    let (lines, summary) = mixed(&program, Some(SERVERS), "");
    let own: Vec<_> =
        lines.iter().filter(|line| !line[0].starts_with(['C', 'G']) && line[1] == "0").collect();
    let kind = |line: &[String]| line[4].parse::<u32>().unwrap() % 4;
    let shown: Vec<_> = own.iter().map(|line| format!("{} {}, {}", line[2], line[3], kind(line))).collect();
    // Destination, bytes, and what is in front: the collectives; records of the task; for the message behind the wait, the answer.
    assert_eq!(shown[..4], ["3 0, 3", "1 5, 1", "0 0, 1", "1 6, 2"]);
    let answer = lines.iter().find(|line| line[0] == own[3][6]).unwrap();
    assert_eq!([1, 2, 3].map(|at| answer[at].as_str()), ["3", "0", "8"]);
    assert!(summary.not_representable.is_empty());
}

/// Open MPI gathers where each rank's access begins, unless two ranks have the file. Without servers the bytes are counted.
#[test]
fn collective_accesses_are_agreed_on_and_counted() {
    for (ranks, agreed, counted) in [(2, 0, 2), (3, 1, 2)] {
        let mut program = Program::new(ranks);
        open(&mut program);
        for (task, bytes) in [(0, 8), (1, 8), (2, 0)].into_iter().take(ranks as usize) {
            call(&mut program, task, "MPI_File_write_all", bytes, access(None, true, true, None));
        }
        program.finish();
        let (lines, summary) = mixed(&program, None, "Open MPI v4.1.4");
        let gathered =
            agreements(&lines, "0").into_iter().filter(|&part| part == [5, 32, 32 * u64::from(ranks)]);
        assert_eq!(gathered.count(), agreed, "{ranks}");
        let all = summary.not_representable["MPI_File_write_all"];
        assert_eq!((all.count, all.bytes), (counted, Bytes(16)));
    }
}

/// MPICH makes the whole access in its first half, in two phases where ranks interleave; with Open MPI each rank starts an access of its own.
#[test]
fn the_first_half_of_a_split_access_is_what_the_library_makes_of_it() {
    let own = || vec![(3, 8)];
    for (library, gathered, expected) in
        [("MPICH", 2, [vec![(3, 16)], vec![(0, 16), (0, 8)]]), ("Open MPI v4.1.4", 0, [own(), own()])]
    {
        let mut program = Program::new(2);
        open(&mut program);
        for task in [0, 1] {
            let offset = Some(8 * (1 - i64::from(task)));
            call(&mut program, task, "MPI_File_write_at_all_begin", 8, access(offset, true, true, None));
            call(&mut program, task, "MPI_File_write_at_all_end", 0, Detail::None);
        }
        program.finish();
        let (lines, summary) = mixed(&program, Some(IoServers { width: 1, ..SERVERS }), library);
        let agreed = agreements(&lines, "0").into_iter().filter(|&part| part == [5, 8, 16]).count();
        assert_eq!(agreed, gathered, "{library}");
        assert_eq!([0, 1].map(|task| messages(&lines, task)), expected, "{library}");
        assert!(summary.not_representable.is_empty(), "{:?}", summary.not_representable);
        // What the second half waits for, the first one does in the trace.
        assert_eq!(summary.spent.calls_kept, 0, "{library}");
    }
}

/// Whether accesses are atomic, and hints, are agreed on.
#[test]
fn settings_of_a_file_are_agreed_on() {
    for (library, expected) in [("MPICH", vec![[0, 4, 0], [2, 4, 4]]), ("Open MPI v4.1.4", vec![[0, 4, 0]])] {
        let mut program = Program::new(2);
        open(&mut program);
        for task in [0, 1] {
            for function in ["MPI_File_set_atomicity", "MPI_File_set_info"] {
                call(&mut program, task, function, 0, access(None, true, true, None));
            }
        }
        program.finish();
        let (lines, _) = mixed(&program, Some(SERVERS), library);
        let behind_opening = if library == "MPICH" { 2 } else { 3 };
        assert_eq!(agreements(&lines, "0")[behind_opening..], expected, "{library}");
    }
}

/// Accesses to a file that the capture does not open, its view and its end, are counted as calls that the trace does not have.
#[test]
fn unknown_files_are_counted() {
    let mut program = Program::new(2);
    let view = Detail::FileView { file: FILE, displacement: 0, unit: Bytes(1) };
    for (function, detail) in [
        ("MPI_File_set_view", view),
        ("MPI_File_read", access(None, false, false, None)),
        ("MPI_File_close", Detail::FileClose(FILE)),
    ] {
        call(&mut program, 0, function, 8, detail);
    }
    program.finish();
    let (lines, summary) = mixed(&program, Some(SERVERS), "");
    assert_eq!(agreements(&lines, "0").len(), 0);
    let counted: Vec<_> = summary.not_representable.values().map(|tally| tally.count).collect();
    assert_eq!(counted, [1, 1, 1]);
}

/// The second half of a split collective moves nothing of its own: with servers, the first half is in the trace.
#[test]
fn ends_of_split_accesses_are_counted_only_without_servers() {
    let mut program = Program::new(2);
    open(&mut program);
    for (function, bytes) in [("MPI_File_read_all_end", 8), ("MPI_File_delete", 0)] {
        call(&mut program, 0, function, bytes, Detail::None);
    }
    program.finish();
    let counted = |io| mixed(&program, io, "").1.not_representable.into_keys().collect::<Vec<_>>();
    // To delete a file moves nothing.
    assert_eq!(counted(None), ["MPI_File_read_all_end"]);
    assert_eq!(counted(Some(SERVERS)), [""; 0]);
}

/// `MPI_File_sync` waits for an answer of each server that keeps the file; its time is no computing.
#[test]
fn what_is_written_is_stored_by_all_servers_of_the_file() {
    for (library, agreed) in [("MPICH", 0), ("Open MPI v4.1.4", 1)] {
        let mut program = Program::new(2);
        open(&mut program);
        call(&mut program, 0, "MPI_File_write_at", 1, access(Some(0), true, false, None));
        for task in [0, 1] {
            call(&mut program, task, "MPI_File_sync", 0, access(None, true, true, None));
        }
        program.finish();
        let (lines, summary) = mixed(&program, Some(SERVERS), library);
        assert_eq!(messages(&lines, 0), [(3, 1), (3, 0), (4, 0)], "{library}");
        assert_eq!(messages(&lines, 1), [(3, 0), (4, 0)], "{library}");
        assert_eq!(messages(&lines, 3), [(0, 0), (0, 0), (1, 0)], "{library}");
        let barriers = agreements(&lines, "0").into_iter().filter(|&part| part == [6, 0, 0]).count();
        assert_eq!((barriers, summary.spent.calls_kept), (agreed, 0), "{library}");
        // Without servers it is a call without a record.
        assert!(mixed(&program, None, "MPICH").1.spent.calls_kept > 0);
    }
}

/// The time of waiting for an access is that of files.
#[test]
fn waits_for_accesses_are_of_files() {
    let mut program = Program::new(2);
    open(&mut program);
    call(&mut program, 0, "MPI_File_iread", 8, access(Some(0), false, false, Some(0)));
    let all = Completions::Run { first: RequestId { thread: 0, number: 0 }, count: 1 };
    program.add(0, 0, What::By("MPI_Wait", Action::Complete(all)));
    program.finish();
    let (_, summary) = mixed(&program, Some(SERVERS), "");
    // Of the two ranks that open it, and of the wait.
    assert_eq!((summary.spent.times.file, summary.spent.times.window), (10 + 10 + 10, 0));
}

/// What has been accessed at the shared pointer moves the rank's own position as little as the other way round; a view sets back both.
#[test]
fn the_shared_pointer_is_one_of_its_own() {
    let mut program = Program::new(2);
    open(&mut program);
    let read = |program: &mut Program, function, bytes| {
        call(program, 0, function, bytes, access(None, false, false, None));
    };
    // Bytes 0 to 10 of both, then 10 to 20 and 20 to 30; after the view 0 to 10 again.
    read(&mut program, "MPI_File_read_shared", 10);
    read(&mut program, "MPI_File_read", 10);
    read(&mut program, "MPI_File_read_shared", 10);
    read(&mut program, "MPI_File_read_shared", 10);
    for task in 0..2 {
        let view = Detail::FileView { file: FILE, displacement: 0, unit: Bytes(5) };
        call(&mut program, task, "MPI_File_set_view", 0, view);
    }
    read(&mut program, "MPI_File_read_shared", 10);
    // Bytes 10 to 15, in units of the view.
    call(&mut program, 0, "MPI_File_seek", 0, Detail::FileSeek { file: FILE, position: 2 });
    read(&mut program, "MPI_File_read", 5);
    program.finish();
    let (lines, _) = mixed(&program, Some(SERVERS), "");
    assert_eq!(messages(&lines, 0), [(3, 0), (3, 0), (4, 0), (3, 0), (3, 0), (4, 0)]);
}

/// With servers, too, other calls without a record are computing.
#[test]
fn only_ends_of_split_accesses_wait_for_servers() {
    let mut program = Program::new(2);
    open(&mut program);
    call(&mut program, 0, "MPI_File_seek", 0, Detail::FileSeek { file: FILE, position: 2 });
    call(&mut program, 0, "MPI_File_read_all_end", 0, Detail::None);
    program.finish();
    assert_eq!(mixed(&program, Some(SERVERS), "").1.spent.calls_kept, 10);
    assert_eq!(mixed(&program, None, "").1.spent.calls_kept, 10 + 10);
}

/// Of three accesses the members interleave in the first one alone, the second is that of one rank.
#[test]
fn members_gather_only_where_they_interleave() {
    let mut program = Program::new(2);
    open(&mut program);
    for task in [0, 1] {
        let offset = Some(8 * (1 - i64::from(task)));
        call(&mut program, task, "MPI_File_write_at_all", 8, access(offset, true, true, None));
    }
    call(&mut program, 0, "MPI_File_write_at", 9, access(Some(0), true, false, None));
    for task in [0, 1] {
        let offset = Some(16 + 8 * i64::from(task));
        call(&mut program, task, "MPI_File_write_at_all", 8, access(offset, true, true, None));
    }
    program.finish();
    let (lines, _) = mixed(&program, Some(IoServers { width: 1, ..SERVERS }), "MPICH");
    assert_eq!(messages(&lines, 0), [(3, 16), (3, 9), (3, 8)]);
    assert_eq!(messages(&lines, 1), [(0, 16), (0, 8), (3, 8)]);
}

/// A view without gaps replaces one with gaps.
#[test]
fn a_view_has_no_gaps_of_the_view_before() {
    let gathers = |with_gaps: &[bool]| {
        let mut program = Program::new(2);
        open(&mut program);
        for task in [0, 1] {
            let (file, displacement, unit) = (FILE, 8 * i64::from(task), Bytes(1));
            let tile = Tile { size: Bytes(4), extent: Bytes(16), first: Bytes(0), span: Bytes(4) };
            for &with_gaps in with_gaps {
                let view = match with_gaps {
                    true => Detail::FileViewTiled { file, displacement, unit, tile },
                    false => Detail::FileView { file, displacement, unit },
                };
                call(&mut program, task, "MPI_File_set_view", 0, view);
            }
        }
        for task in [0, 1] {
            call(&mut program, task, "MPI_File_write_all", 8, access(None, true, true, None));
        }
        program.finish();
        let (lines, _) = mixed(&program, Some(IoServers { width: 1, ..SERVERS }), "MPICH");
        messages(&lines, 1).into_iter().any(|(to, _)| to == 0)
    };
    assert!(gathers(&[true]) && !gathers(&[true, false]));
}

/// The lines of a trace of MPICH in which members access 8 bytes each at these offsets, on these hosts; one server has all bytes.
fn together(write: bool, members: &[(i64, &str)]) -> Vec<Vec<String>> {
    let mut program = Program::new(members.len() as u32);
    open(&mut program);
    let function = if write { "MPI_File_write_at_all" } else { "MPI_File_read_at_all" };
    for (task, &(offset, _)) in (0..).zip(members) {
        call(&mut program, task, function, 8, access(Some(offset), write, true, None));
    }
    program.finish();
    let dir = tempfile::tempdir().unwrap();
    capture::write_with(dir.path(), &program.tasks, |rank| RankInfo {
        library: "MPICH".into(),
        host: members[rank].1.into(),
        ..RankInfo::default()
    });
    let trace = dir.path().join("t.vef");
    let io = Some(IoServers { count: 1, stripe: Bytes(1000), width: 1 });
    mix(dir.path(), &trace, &Options { io, ..Options::default() }, &Quiet).unwrap();
    let text = std::fs::read_to_string(trace).unwrap();
    text.lines().skip(1).map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// The collectives of a task that are not those to open the file, by name.
fn exchanged(lines: &[Vec<String>], task: &str) -> Vec<(Operation, [u64; 2])> {
    let opening = 2;
    let all = agreements(lines, task).into_iter().skip(opening);
    let named = |[code, sent, received]: [u64; 3]| {
        let operation = Operation::ALL.iter().find(|known| u64::from(known.default_code().0) == code);
        (*operation.unwrap(), [sent, received])
    };
    all.map(named).collect()
}

#[test]
fn an_aggregator_accesses_what_members_of_its_host_give_it() {
    use Operation::{Allreduce, Alltoall, Bcast};
    let write = together(true, &[(8, "one"), (0, "one")]);
    // Where the bytes are, and the bytes.
    assert_eq!(messages(&write, 1), [(0, 16), (0, 8)]);
    assert_eq!((messages(&write, 0), messages(&write, 2)), (vec![(2, 16)], vec![(0, 0)]));
    let [root, other] = ["0", "1"].map(|task| exchanged(&write, task));
    let begin = [(Alltoall, [8, 8]), (Allreduce, [4, 4]), (Alltoall, [8, 8])];
    assert!(root.ends_with(&[&begin[..], &[(Bcast, [4, 0])]].concat()), "{root:?}");
    assert!(other.ends_with(&[&begin[..], &[(Bcast, [0, 4])]].concat()), "{other:?}");
    // What is between is read, so that all can be written.
    let holes = together(true, &[(12, "one"), (0, "one")]);
    assert_eq!((messages(&holes, 0), messages(&holes, 2)), (vec![(2, 0), (2, 20)], vec![(0, 20), (0, 0)]));
    for offset in [8, 12] {
        let all = 8 + offset as u64;
        let read = together(false, &[(offset, "one"), (0, "one")]);
        assert_eq!((messages(&read, 0), messages(&read, 1)), (vec![(2, 0), (1, 8)], vec![(0, 16)]));
        assert_eq!(messages(&read, 2), [(0, all)]);
        assert!(exchanged(&read, "1").ends_with(&begin), "{read:?}");
    }
}

/// Each has half of the bytes from the first to the last.
#[test]
fn each_host_has_an_aggregator_for_a_part() {
    let lines = together(true, &[(8, "one"), (0, "two"), (16, "one")]);
    // Of the 8 bytes of the first, 4 are in each part. The third has none in the first part.
    assert_eq!(messages(&lines, 0), [(1, 16), (1, 4), (3, 12)]);
    assert_eq!(messages(&lines, 1), [(0, 16), (0, 8), (3, 12)]);
    assert_eq!(messages(&lines, 2), [(1, 16), (1, 8)]);
    let last = exchanged(&lines, "2").pop();
    assert_eq!(last, Some((Operation::Allreduce, [4, 4])));
}
