//! Reads the events of tasks, in parallel.

use crate::communicators::Communicators;
use crate::error::MixError;
use crate::index::CommIndex;
use crate::order::Samples;
use crate::parts;
use crate::task::{Asked, AskedOf, PartitionedRequest, Task};
use crate::two_phase::{Access, Plans};
use crate::walk::{Answer, Fenced, Owed, Told, Walk, WalkOptions};
use crate::{Creations, Options, Progress, Rma, SendWaits, StorageServers};
use collectives::creations::Library;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use vef_format::capture::{Capture, CaptureError, Ending, Layout};
use vef_format::error::Place;
use vef_format::format::named_container;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// Memory of tasks while they are matched and written, as a multiple of their memory behind the walk (a fraction). The
/// further memory is channel ends and partners: at most 4 bytes beside the 9 of a receive, and less beside a message.
const WHEN_MATCHED: (u64, u64) = (3, 2);

/// Reads tasks of a capture.
pub(crate) struct Reading<'a> {
    pub(crate) capture: &'a Capture,
    progress: &'a dyn Progress,
    lenient: bool,
    walk_options: WalkOptions<'a>,
    /// What tasks do for one-sided calls of others, once that is known.
    owed: OnceLock<HashMap<Rank, Owed>>,
    /// The partitioned sends to tasks whose receives have other partitions.
    told: OnceLock<HashMap<Rank, Told>>,
    /// The accesses to files in two phases.
    plans: OnceLock<Plans>,
    /// Number of records of the last task that was read, at most [`EXPECTED`]: tasks are often alike.
    expected: AtomicUsize,
}

/// Maximum number of records for which memory is reserved.
const EXPECTED: usize = 1 << 14;

/// Result of a reading.
pub(crate) struct Read {
    /// When each task entered `MPI_Init`.
    pub(crate) zeros: Vec<u64>,
    /// The one-sided requests of the tasks that have some.
    pub(crate) asked: Vec<(Rank, Vec<Asked>)>,
    /// The collective accesses to files of the tasks that have some.
    pub(crate) accesses: Vec<(Rank, Vec<Access>)>,
    /// The partitioned requests of the tasks that have some.
    pub(crate) partitioned: Vec<(Rank, Vec<PartitionedRequest>)>,
    /// Consecutive tasks that fit into memory together.
    pub(crate) parts: Vec<Range<u32>>,
    /// All tasks, if they fit.
    pub(crate) tasks: Option<Vec<Task>>,
}

impl<'a> Reading<'a> {
    /// Reads `capture` for `trace`.
    pub(crate) fn new(
        capture: &'a Capture,
        trace: &Path,
        options: &'a Options,
        progress: &'a dyn Progress,
    ) -> Self {
        // The first rank may not be recorded.
        let mut ranks = (0..capture.tasks()).filter_map(|rank| capture.rank(Rank(rank)));
        let known = ranks.find(|info| !info.library.is_empty());
        let library = known.map_or_else(Library::default, |info| Library::named(&info.library));
        let servers = options.io.map_or(0, |servers| servers.count);
        let walk_options = WalkOptions {
            with_notes: named_container(trace),
            by_length: capture.layout() == Layout::Prospector,
            with_room: false,
            keep_init: options.keep_init || capture.layout() == Layout::Prospector,
            without_clocks: options.without_clocks,
            polls: options.polls,
            keep_preempted: options.keep_preempted,
            send_waits: match capture.layout() {
                Layout::Prospector => SendWaits::Compute,
                _ => options.send_waits,
            },
            own_work: options.own_work,
            library,
            creations: match options.creations {
                Creations::Collectives => Some(library),
                Creations::Compute => None,
            },
            lower: options.lower_collectives.as_ref(),
            io: options.io.map(|servers| StorageServers { first: Rank(capture.tasks()), servers }),
            interfaces: (options.rma == Rma::Hardware).then(|| Rank(capture.tasks() + servers)),
        };
        Self {
            capture,
            progress,
            lenient: options.lenient,
            walk_options,
            owed: OnceLock::new(),
            told: OnceLock::new(),
            plans: OnceLock::new(),
            expected: AtomicUsize::new(0),
        }
    }

    /// Number of tasks of the trace: those of the capture, then the storage servers, then the network interfaces.
    pub(crate) fn tasks(&self) -> u32 {
        self.capture.tasks() + self.servers() + self.interfaces()
    }

    /// Number of storage servers.
    pub(crate) fn servers(&self) -> u32 {
        self.walk_options.io.map_or(0, |io| io.servers.count)
    }

    /// Number of network interfaces that answer: none, or one for each task of the capture.
    pub(crate) fn interfaces(&self) -> u32 {
        self.walk_options.interfaces.map_or(0, |_| self.capture.tasks())
    }

    /// Reads the tasks of `share`, and keeps them if they fit into `room` bytes: how much memory a task takes is known only
    /// after reading, because events may be compressed or become many records.
    pub(crate) fn read(
        &self,
        share: Range<u32>,
        room: u64,
        communicators: &Communicators,
    ) -> Result<Read, MixError> {
        let kept: Vec<Mutex<Option<Task>>> = share.clone().map(|_| Mutex::default()).collect();
        let of =
            |rank: u32| kept[(rank - share.start) as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let (sum, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let read = |rank: u32| {
            let task = self.walk(Rank(rank), communicators, self.walk_options);
            self.progress.advance(1);
            let mut task = task?;
            let asked = std::mem::take(&mut task.asked);
            let partitioned = std::mem::take(&mut task.partitioned);
            let accesses = std::mem::take(&mut task.accesses);
            let (zero, need) = (task.zero.0, task.memory() as u64 * WHEN_MATCHED.0 / WHEN_MATCHED.1);
            let all = sum.fetch_add(need, Ordering::Relaxed).saturating_add(need);
            if all > room && share.len() > 1 && !over.swap(true, Ordering::SeqCst) {
                share.clone().for_each(|rank| *of(rank) = None);
            }
            *of(rank) = Some(task);
            if over.load(Ordering::SeqCst) {
                *of(rank) = None;
            }
            Ok((zero, need, (Rank(rank), asked), (Rank(rank), partitioned), (Rank(rank), accesses)))
        };
        // Collect first: the error of the lowest task is returned, not the earliest.
        let read: Vec<Result<_, MixError>> = share.clone().into_par_iter().map(read).collect();
        let (mut zeros, mut needs) = (Vec::new(), Vec::<u64>::new());
        let (mut asked, mut partitioned, mut accesses) = (Vec::new(), Vec::new(), Vec::new());
        for task in read {
            let (zero, need, asking, transfers, accessing) = task?;
            zeros.push(zero);
            needs.push(need);
            asked.extend((!asking.1.is_empty()).then_some(asking));
            partitioned.extend((!transfers.1.is_empty()).then_some(transfers));
            accesses.extend((!accessing.1.is_empty()).then_some(accessing));
        }
        if over.into_inner() {
            let parts = parts::plan(share.clone(), room, |rank| needs[(rank - share.start) as usize]);
            return Ok(Read { zeros, asked, accesses, partitioned, parts, tasks: None });
        }
        let kept = kept.into_iter().map(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner));
        let tasks = Some(kept.flatten().collect());
        Ok(Read { zeros, asked, accesses, partitioned, parts: vec![share], tasks })
    }

    /// From now on, files are accessed by `plans`; returns the tasks of `share` that take part in one. `group` returns the members of a
    /// communicator.
    pub(crate) fn plan(
        &self,
        share: &Range<u32>,
        plans: Plans,
        group: impl Fn(CommIndex) -> Vec<Rank>,
    ) -> BTreeSet<Rank> {
        let members = plans.keys().flat_map(|&comm| group(comm));
        let planned = members.filter(|task| share.contains(&task.0)).collect();
        // Set once a mix.
        let _ = self.plans.set(plans);
        planned
    }

    /// From now on, tasks of `share` know the partitions of the sends of all tasks; returns those tasks that receive other partitions.
    pub(crate) fn tell(
        &self,
        share: &Range<u32>,
        partitioned: impl IntoIterator<Item = (Rank, Vec<PartitionedRequest>)>,
    ) -> Vec<Rank> {
        let (mut told, mut receives) = (HashMap::<Rank, Told>::new(), HashMap::<Rank, Told>::new());
        for (task, list) in partitioned {
            for request in list {
                let (to, sender) = if request.sends { (request.peer, task) } else { (task, request.peer) };
                if share.contains(&to.0) {
                    let table = if request.sends { &mut told } else { &mut receives };
                    let of_task = table.entry(to).or_default();
                    of_task.entry((request.comm, sender, request.tag)).or_default().push(request);
                }
            }
        }
        told.retain(|task, sends| {
            let mut receives = receives.get(task).into_iter().flatten();
            receives.any(|(channel, received)| {
                let sent = sends.get(channel).map_or(&[][..], Vec::as_slice);
                let differ = |(one, other): (&PartitionedRequest, &PartitionedRequest)| {
                    (one.partitions, one.bytes) != (other.partitions, other.bytes)
                };
                sent.iter().zip(received).any(differ)
            })
        });
        let receivers = told.keys().copied().collect();
        // Set once a mix.
        let _ = self.told.set(told);
        receivers
    }

    /// From now on, tasks of `share` do what one-sided calls of all tasks ask of them; returns those of which something is asked. `shifts`
    /// convert the tasks' clocks to the common one.
    pub(crate) fn answer(
        &self,
        share: &Range<u32>,
        asked: impl IntoIterator<Item = (Rank, Vec<Asked>)>,
        shifts: &[i64],
    ) -> Vec<Rank> {
        let mut owed: HashMap<Rank, Owed> = HashMap::new();
        for (origin, Asked { comm, target, of }) in
            asked.into_iter().flat_map(|(origin, list)| list.into_iter().map(move |asked| (origin, asked)))
        {
            if !share.contains(&target.0) {
                continue;
            }
            let owed = owed.entry(target).or_default();
            match of {
                AskedOf::Answer { asked, at, answered, bytes, round, transfer } => {
                    let shift = shifts[origin.index()].saturating_sub(shifts[target.index()]);
                    let [at, before] = [at, answered].map(|time| time.saturating_add_signed(shift));
                    let answered = if shift == 0 { answered } else { u64::MAX };
                    let answer = Answer { comm, origin, at, before, asked, answered, bytes, round, transfer };
                    owed.answers.push(answer);
                }
                AskedOf::Fence(fence) => owed.fenced.push(Fenced { comm, fence, origin }),
                AskedOf::Reach(reach) => owed.reached.push((comm, reach)),
            }
        }
        for Owed { answers, fenced, .. } in owed.values_mut() {
            // A task's requests to another on a window come in its order.
            let mut next: HashMap<(CommIndex, Rank), u64> = HashMap::new();
            for answer in answers.iter_mut().rev() {
                let next = next.entry((answer.comm, answer.origin)).or_insert(u64::MAX);
                *next = answer.at.min(*next);
                answer.at = *next;
            }
            answers.sort_by_key(|answer| (answer.at, answer.round));
            let mut before = u64::MAX;
            for answer in answers.iter_mut().rev() {
                before = before.min(answer.before);
                answer.before = before;
            }
            fenced.sort_unstable();
        }
        let mut targets: Vec<Rank> = owed.keys().copied().collect();
        targets.sort_unstable();
        // Set once a mix.
        let _ = self.owed.set(owed);
        targets
    }

    /// Reads the tasks of a part again.
    pub(crate) fn read_again(
        &self,
        part: Range<u32>,
        communicators: &Communicators,
    ) -> Result<Vec<Task>, MixError> {
        Ok(self.read(part, u64::MAX, communicators)?.tasks.unwrap_or_default())
    }

    /// Walks over all events of one task.
    fn walk<'w>(
        &'w self,
        rank: Rank,
        communicators: &'w Communicators,
        options: WalkOptions<'w>,
    ) -> Result<Task, MixError> {
        let owed = self.owed.get().and_then(|all| all.get(&rank));
        if rank.0 >= self.capture.tasks() {
            let options = WalkOptions { with_notes: false, ..options };
            let expected = owed.map_or(0, |owed| owed.answers.len());
            return Walk::new(rank, communicators, options, None, owed, expected).serve();
        }
        let mut events = self.capture.events(rank)?;
        let expected = self.expected.load(Ordering::Relaxed);
        let mut walk = Walk::new(rank, communicators, options, Some(&events), owed, expected);
        walk.tell(self.told.get().and_then(|all| all.get(&rank)), self.plans.get());
        events.each_to(&mut walk)?;
        self.expected.store(EXPECTED.min(walk.records()), Ordering::Relaxed);
        let torn = match events.ending() {
            Ending::Cut { .. } if !self.lenient && self.capture.is_being_written(rank) => {
                return Err(CaptureError::InUse(Place::file(&self.capture.file(rank))).into());
            }
            Ending::Cut { torn } => torn.into(),
            Ending::Finished | Ending::Stopped | Ending::Unbegun => 0,
        };
        let mut task = walk.finish(&events)?;
        let counts = &mut task.counts;
        (counts.skipped_unknown, counts.torn) = (events.skipped().values().sum(), torn);
        Ok(task)
    }

    /// The buffer size of a receive. It is not kept; the few that are reported are read again.
    pub(crate) fn room(&self, rank: Rank, receive: u32, communicators: &Communicators) -> Option<Bytes> {
        let options = WalkOptions { with_room: true, ..self.walk_options };
        self.walk(rank, communicators, options).ok()?.room?.get(receive as usize).copied()
    }
}

/// Samples the starts of the records of `tasks`, the first of which is `first`; `shifts` convert their clocks.
pub(crate) fn sample(first: Rank, tasks: &[Task], shifts: &[i64]) -> Samples {
    let of = |(at, (task, &shift)): (usize, (&Task, &i64))| {
        Samples::of(Rank(first.0 + at as u32), &task.records, shift)
    };
    let sampled: Vec<_> = tasks.par_iter().zip(shifts).enumerate().map(of).collect();
    let mut all = Samples::default();
    sampled.into_iter().for_each(|samples| all.merge(samples));
    all
}
