//! The lines of a trace: `rank action arguments`.

use crate::error::Problem;
use vef_format::capture::event::SendMode;
use vef_format::operation::Operation;

/// Source and tag that stand for any; the first ones are those of SimGrid.
const ANY_SOURCE: [i64; 3] = [-333, -555, -1];
const ANY_TAG: [i64; 2] = [-444, -1];

/// Sizes of the types, by number.
const SIZES: [u64; 38] = [
    8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16,
    8, 8, 8, 16, 16,
];
/// Numbers of types beyond these, and their sizes: those of the program, which are counted in bytes, `MPI_LONG_DOUBLE_INT`, `MPI_PACKED`
/// and `MPI_COUNT`.
const FURTHER: [(i64, u64); 4] = [(-1, 1), (50, 32), (57, 1), (59, 8)];

/// What is known of a trace before its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Number of ranks.
    pub(super) ranks: u32,
    /// Bytes of a count without a type: those of a double where `init` has an argument.
    pub(super) default: u64,
    /// Whether the lines are those of versions before 3.20.
    pub(super) old: bool,
    /// Whether the tags of collectives are those of versions before 3.24, which are higher by one.
    pub(super) old_tags: bool,
}

/// A peer and a tag; `None`: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// Negative: none.
    pub(super) peer: Option<i64>,
    pub(super) tag: Option<i32>,
    pub(super) bytes: u64,
}

/// A collective: bytes of this rank's part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) root: Option<u32>,
    /// Its block.
    pub(super) own: u64,
    /// All blocks, at the root of a rooted operation.
    pub(super) sum: u64,
    /// Sent and received, where these do not follow from the above.
    pub(super) amounts: Option<(u64, u64)>,
    pub(super) send: Vec<u64>,
    pub(super) recv: Vec<u64>,
    /// Computing behind it.
    pub(super) flops: f64,
    /// The tag of its request, if a later line waits for it.
    pub(super) request: Option<i64>,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Whether counts are of doubles.
    Init(bool),
    Finalize,
    Compute(f64),
    Sleep(f64),
    Send(Envelope, SendMode),
    Isend(Envelope),
    Recv(Envelope),
    Irecv(Envelope),
    /// Source, destination and tag of the request; none: the last one of the rank.
    Wait(Option<[i64; 3]>),
    WaitAll,
    WaitAny,
    Test,
    /// Destination and source.
    Exchange(Envelope, Envelope),
    Collective(Operation, Part),
    /// It neither communicates nor takes time.
    Nothing,
    /// A trace cannot represent it.
    Other,
}

/// Collectives, which with an `i` in front do not block, and the tags that the requests of these have in SimGrid: a kind of collective has
/// one, but `iscan` and `iexscan` have the same.
const COLLECTIVES: [(&str, i64); 15] = [
    ("allgather", -557),
    ("allgatherv", -668),
    ("allreduce", -4446),
    ("alltoall", -1113),
    ("alltoallv", ALLTOALLV),
    ("barrier", -779),
    ("bcast", -3335),
    ("exscan", -889),
    ("gather", -446),
    ("gatherv", -2224),
    ("reduce", -113),
    ("reducescatter", -890),
    ("scan", -889),
    ("scatter", -224),
    ("scatterv", -335),
];
const ALLTOALLV: i64 = -1001;
/// The tag of `MPI_Ialltoallw`, which SimGrid writes as `ialltoallv`.
const ALLTOALLW: i64 = -1021;

/// Words of a line.
struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, expected: &'static str) -> Result<&'a str, Problem> {
        self.0.next().ok_or(Problem::Expected { expected, found: "the end of the line".to_owned() })
    }

    /// A real number; integers may have this form, too.
    fn real(&mut self, expected: &'static str) -> Result<f64, Problem> {
        real(self.word(expected)?, expected)
    }

    /// A number of elements.
    fn count(&mut self) -> Result<u64, Problem> {
        whole(self.word("a count")?)
    }

    /// As C's `stoi` reads it: `1e3` is 1.
    fn int(&mut self, expected: &'static str) -> Result<i64, Problem> {
        int(self.word(expected)?, expected)
    }

    /// The size of a type, if one follows.
    fn size(&mut self, context: &Context) -> Result<u64, Problem> {
        let Some(word) = self.0.next() else { return Ok(context.default) };
        let number = int(word, "a type")?;
        let known = usize::try_from(number).ok().and_then(|at| SIZES.get(at));
        let further = || FURTHER.iter().find(|(further, _)| *further == number).map(|(_, size)| size);
        known.or_else(further).copied().ok_or(Problem::Expected {
            expected: "the number of a type whose size is known",
            found: word.to_owned(),
        })
    }

    fn root(&mut self) -> Result<u32, Problem> {
        let Some(word) = self.0.next() else { return Ok(0) };
        let root = u32::try_from(int(word, "a root")?).ok();
        root.ok_or(Problem::Expected { expected: "a root", found: word.to_owned() })
    }

    fn counts(&mut self, context: &Context) -> Result<Vec<u64>, Problem> {
        (0..context.ranks).map(|_| self.count()).collect()
    }
}

fn real(word: &str, expected: &'static str) -> Result<f64, Problem> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or(Problem::Expected { expected, found: word.to_owned() })
}

fn whole(word: &str) -> Result<u64, Problem> {
    if let Ok(number) = word.parse() {
        return Ok(number);
    }
    let number = real(word, "a count")?;
    // Exact below 2^53; integers without an exponent are read above.
    if number < 2f64.powi(63) { Ok(number as u64) } else { Err(Problem::TooLarge(word.to_owned())) }
}

fn int(word: &str, expected: &'static str) -> Result<i64, Problem> {
    let sign = usize::from(word.starts_with(['-', '+']));
    let digits = word[sign..].find(|c: char| !c.is_ascii_digit()).map_or(word.len(), |end| sign + end);
    word[..digits].parse().map_err(|_| Problem::Expected { expected, found: word.to_owned() })
}

fn times(count: u64, size: u64) -> Result<u64, Problem> {
    count.checked_mul(size).ok_or_else(|| Problem::TooLarge(format!("{count} × {size} bytes")))
}

fn scaled(counts: Vec<u64>, size: u64) -> Result<(Vec<u64>, u64), Problem> {
    let bytes: Vec<u64> = counts.into_iter().map(|count| times(count, size)).collect::<Result<_, _>>()?;
    let sum = bytes.iter().try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
    let sum = sum.ok_or_else(|| Problem::TooLarge("the sum of the counts".to_owned()))?;
    Ok((bytes, sum))
}

/// The rank of a line, and the rest.
pub(super) fn rank(line: &str) -> Option<(u32, &str)> {
    let (rank, rest) = line.split_once([' ', '\t'])?;
    Some((rank.parse().ok()?, rest.trim_ascii_start()))
}

/// The tags of requests for which a `wait` with this tag may be, if it is one of collectives, which no program has: its own, and that which
/// versions before 3.24 wrote higher by one. The likelier one is the first.
pub(super) fn tags_of_collectives(tag: i64, context: &Context) -> Option<[i64; 2]> {
    let alltoallw_as_written = |tag| if tag == ALLTOALLW { ALLTOALLV } else { tag };
    let (newer, older) = (tag, tag.saturating_sub(1));
    let tags = if context.old_tags { [older, newer] } else { [newer, older] };
    (tag < 0 && !ANY_TAG.contains(&tag)).then(|| tags.map(alltoallw_as_written))
}

/// Whether a `wait` has a tag that only versions before 3.24 write, or only later ones; `None`: neither. A reduce-scatter of the former and a
/// scan of the latter have the same.
pub(super) fn has_old_tag(action: &str) -> Option<bool> {
    let mut words = action.split_ascii_whitespace();
    let tag: i64 = words.next().filter(|&name| name == "wait").and_then(|_| words.nth(2))?.parse().ok()?;
    let is_kind = |tag| tag == ALLTOALLW || COLLECTIVES.iter().any(|&(_, kind)| kind == tag);
    match (is_kind(tag), is_kind(tag.saturating_sub(1))) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// The peer of a send or receive, the higher one if there are two.
pub(super) fn peer(action: &str) -> Option<u32> {
    let mut words = action.split_ascii_whitespace();
    match words.next()? {
        "send" | "Ssend" | "ssend" | "isend" | "Issend" | "issend" | "recv" | "irecv" => {
            words.next()?.parse().ok()
        }
        "sendRecv" | "sendrecv" => {
            words.skip(1).step_by(2).take(2).filter_map(|peer| peer.parse().ok()).max()
        }
        _ => None,
    }
}

/// Whether a line is one of such a trace.
pub(super) fn is_line(line: &str) -> bool {
    const FIRST: [&str; 24] = [
        "init",
        "finalize",
        "barrier",
        "compute",
        "sleep",
        "send",
        "isend",
        "recv",
        "irecv",
        "wait",
        "test",
        "waitall",
        "sendrecv",
        "bcast",
        "reduce",
        "allreduce",
        "gather",
        "scatter",
        "allgather",
        "alltoall",
        "comm_size",
        "location",
        "ssend",
        "waitany",
    ];
    let action = rank(line.strip_prefix('p').unwrap_or(line))
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    action.is_some_and(|action| FIRST.contains(&action.to_ascii_lowercase().as_str()))
}

/// Parses a line behind its rank, `me`; also returns the name of the action.
pub(super) fn parse<'a>(line: &'a str, me: u32, context: &Context) -> Result<(&'a str, Action), Problem> {
    let mut words = Words(line.split_ascii_whitespace());
    let name = words.word("an action")?;
    let lower;
    let action = if context.old {
        lower = name.to_ascii_lowercase();
        lower.as_str()
    } else {
        name
    };
    let blocking = action.strip_prefix('i');
    let started = COLLECTIVES.iter().find(|&&(collective, _)| Some(collective) == blocking);
    let action = started.map_or(action, |&(collective, _)| collective);
    let mut parsed = words.action(action, me, context);
    if let Ok(Action::Collective(_, part)) = &mut parsed {
        part.request = started.map(|&(_, tag)| tag);
    }
    // A count for each rank: of more ranks, one would be read as something else.
    if matches!(action, "gatherv" | "scatterv" | "allgatherv" | "alltoallv" | "reducescatter")
        && (parsed.is_err() || words.0.next().is_some())
    {
        let ranks = context.ranks;
        let numbers: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
        let counts = 2 * u64::from(ranks);
        // SimGrid's tracer writes MPI_Reduce_scatter_block with these counts: its size is not in the line.
        if action == "reducescatter"
            && numbers.len() as u64 == counts + 2
            && numbers[..counts as usize].iter().all(|&count| count == "0")
        {
            return Ok((name, Action::Other));
        }
        let what = format!("the arguments of {name} are not those of {ranks} ranks: are files missing?");
        return Err(Problem::Invalid(what));
    }
    Ok((name, parsed?))
}

impl Words<'_> {
    fn action(&mut self, action: &str, me: u32, context: &Context) -> Result<Action, Problem> {
        use Operation::{Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast};
        use Operation::{Exscan, Gather, Gatherv, Reduce, ReduceScatter, Scan, Scatter, Scatterv};
        let part = Part::default;
        Ok(match action {
            "init" => Action::Init(self.0.next().is_some()),
            "finalize" => Action::Finalize,
            "compute" => Action::Compute(self.real("a number of flops")?),
            "sleep" => Action::Sleep(self.real("seconds")?),
            "send" => Action::Send(self.envelope(context)?, SendMode::Standard),
            "Ssend" | "ssend" => Action::Send(self.envelope(context)?, SendMode::Synchronous),
            "isend" | "Issend" | "issend" => Action::Isend(self.envelope(context)?),
            "recv" => Action::Recv(self.envelope(context)?),
            "irecv" => Action::Irecv(self.envelope(context)?),
            "wait" => {
                let first = self.0.clone().next();
                match first {
                    None if context.old => Action::Wait(None),
                    _ => Action::Wait(Some([
                        self.int("a source")?,
                        self.int("a destination")?,
                        self.int("a tag")?,
                    ])),
                }
            }
            "waitall" | "waitAll" => Action::WaitAll,
            "waitAny" | "waitany" => Action::WaitAny,
            "test" | "Test" => Action::Test,
            "sendRecv" | "sendrecv" => {
                let (sent, to) = (self.count()?, self.int("a destination")?);
                let (received, from) = (self.count()?, self.int("a source")?);
                let (send, recv) = (self.size(context)?, self.size(context)?);
                let envelope = |peer: i64, bytes| Envelope { peer: Some(peer), tag: Some(0), bytes };
                Action::Exchange(envelope(to, times(sent, send)?), envelope(from, times(received, recv)?))
            }
            "barrier" => Action::Collective(Barrier, part()),
            "bcast" => {
                let (count, root) = (self.count()?, self.root()?);
                let own = times(count, self.size(context)?)?;
                Action::Collective(Bcast, Part { root: Some(root), own, ..part() })
            }
            "reduce" => {
                let (count, flops, root) = (self.count()?, self.real("flops")?, self.root()?);
                let own = times(count, self.size(context)?)?;
                Action::Collective(Reduce, Part { root: Some(root), own, flops, ..part() })
            }
            "allreduce" | "scan" | "exscan" => {
                let (count, flops) = (self.count()?, self.real("flops")?);
                let own = times(count, self.size(context)?)?;
                let operation = match action {
                    "scan" => Scan,
                    "exscan" => Exscan,
                    _ => Allreduce,
                };
                Action::Collective(operation, Part { own, flops, ..part() })
            }
            "gather" | "scatter" => {
                let (sent, received, root) = (self.count()?, self.count()?, self.root()?);
                let (send, recv) = (times(sent, self.size(context)?)?, times(received, self.size(context)?)?);
                let (operation, own, block) =
                    if action == "gather" { (Gather, send, recv) } else { (Scatter, recv, send) };
                let sum = times(block, context.ranks.into())?;
                let own = if root == me { block } else { own };
                Action::Collective(operation, Part { root: Some(root), own, sum, ..part() })
            }
            "allgather" | "alltoall" => {
                let (_sent, received) = (self.count()?, self.count()?);
                let (_send, recv) = (self.size(context)?, self.size(context)?);
                let own = times(received, recv)?;
                let sum = times(own, context.ranks.into())?;
                let operation = if action == "allgather" { Allgather } else { Alltoall };
                Action::Collective(operation, Part { own, sum, ..part() })
            }
            "gatherv" => {
                let (sent, counts, root) = (self.count()?, self.counts(context)?, self.root()?);
                let own = times(sent, self.size(context)?)?;
                self.blocks(Gatherv, own, counts, Some(root), me, context)?
            }
            "scatterv" => {
                let (counts, received, root) = (self.counts(context)?, self.count()?, self.root()?);
                let send = self.size(context)?;
                let own = times(received, self.size(context)?)?;
                let (send, sum) = scaled(counts, send)?;
                let root = Some(root);
                if root != Some(me) {
                    return Ok(Action::Collective(Scatterv, Part { root, own, sum: own, ..part() }));
                }
                Action::Collective(Scatterv, Part { root, own: send[me as usize], sum, send, ..part() })
            }
            "allgatherv" => {
                let (_sent, counts) = (self.count()?, self.counts(context)?);
                let _send = self.size(context)?;
                self.blocks(Allgatherv, 0, counts, None, me, context)?
            }
            "alltoallv" => {
                let (_, sent, _, received) =
                    (self.count()?, self.counts(context)?, self.count()?, self.counts(context)?);
                let (send, recv) = (self.size(context)?, self.size(context)?);
                let ((send, sent), (recv, received)) = (scaled(sent, send)?, scaled(received, recv)?);
                Action::Collective(Alltoallv, Part { amounts: Some((sent, received)), send, recv, ..part() })
            }
            "reducescatter" => {
                let (counts, flops) = (self.counts(context)?, self.real("flops")?);
                match self.blocks(ReduceScatter, 0, counts, None, me, context)? {
                    Action::Collective(operation, part) => {
                        Action::Collective(operation, Part { flops, ..part })
                    }
                    other => other,
                }
            }
            "comm_size" | "comm_split" | "comm_dup" | "location" => Action::Nothing,
            _ if action.starts_with(|c: char| c.is_ascii_alphabetic()) => Action::Other,
            _ => return Err(Problem::Expected { expected: "an action", found: action.to_owned() }),
        })
    }

    /// A vector form whose counts are those of the receives.
    fn blocks(
        &mut self,
        operation: Operation,
        own: u64,
        counts: Vec<u64>,
        root: Option<u32>,
        me: u32,
        context: &Context,
    ) -> Result<Action, Problem> {
        let (recv, sum) = scaled(counts, self.size(context)?)?;
        if root.is_some() && root != Some(me) {
            return Ok(Action::Collective(operation, Part { root, own, sum: own, ..Part::default() }));
        }
        let own = recv.get(me as usize).copied().unwrap_or(0);
        Ok(Action::Collective(operation, Part { root, own, sum, recv, ..Part::default() }))
    }

    fn envelope(&mut self, context: &Context) -> Result<Envelope, Problem> {
        let peer = self.int("a rank")?;
        let tag = if context.old { 0 } else { self.int("a tag")? };
        let bytes = times(self.count()?, self.size(context)?)?;
        let peer = if ANY_SOURCE.contains(&peer) { None } else { Some(peer) };
        let tag = if ANY_TAG.contains(&tag) { None } else { Some(tag as i32) };
        Ok(Envelope { peer, tag, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Action {
        parse(line, 1, &Context { ranks: 3, default: 1, old: false, old_tags: false }).unwrap().1
    }

    #[test]
    fn numbers_are_read_as_simgrid_reads_them() {
        assert_eq!(of("compute 1e9"), Action::Compute(1e9));
        let message = Envelope { peer: Some(2), tag: Some(1), bytes: 8_000_000 };
        assert_eq!(of("isend 2 1e3 1e6 0"), Action::Isend(message));
        let any = Envelope { peer: None, tag: None, bytes: 64 };
        assert_eq!(of("recv -333 -444 64 6"), Action::Recv(any));
    }

    #[test]
    fn blocks_of_collectives() {
        let Action::Collective(Operation::Gatherv, part) = of("gatherv 5 4 5 6 1 1 2") else { panic!() };
        assert_eq!((part.root, part.own, part.sum, part.recv), (Some(1), 5, 15, vec![4, 5, 6]));
        let Action::Collective(Operation::Gather, part) = of("gather 5 5 0 1 1") else { panic!() };
        assert_eq!((part.root, part.own, part.sum), (Some(0), 20, 60));
        let Action::Collective(Operation::Allreduce, part) = of("allreduce 5e4 5e8") else { panic!() };
        assert_eq!((part.own, part.flops), (50_000, 5e8));
    }

    #[test]
    fn tags_tell_the_version() {
        let of = |tag: i64| has_old_tag(&format!("wait 0 0 {tag}"));
        assert_eq!([-888, -4445, -1020].map(of), [Some(true); 3]);
        assert_eq!([-890, -4446, -1021].map(of), [Some(false); 3]);
        assert_eq!([-889, -7, 5, i64::MIN].map(of), [None; 4]);
        assert_eq!(has_old_tag("isend 0 0 -888"), None);
        let context = Context { ranks: 3, default: 1, old: false, old_tags: true };
        assert_eq!(tags_of_collectives(-889, &context), Some([-890, -889]));
        assert_eq!(tags_of_collectives(i64::MIN, &context), Some([i64::MIN; 2]));
    }

    #[test]
    fn what_is_missing_is_named() {
        let context = Context { ranks: 3, default: 1, old: false, old_tags: false };
        for line in ["send 1", "bcast", "wait", "send x 1 1", "bcast 1 0 44", "compute -1"] {
            assert!(matches!(parse(line, 1, &context), Err(Problem::Expected { .. })), "{line}");
        }
        assert!(matches!(parse("alltoallv 1 1 1", 1, &context), Err(Problem::Invalid(_))));
        let old = Context { old: true, ..context };
        assert_eq!(parse("Wait", 1, &old).unwrap().1, Action::Wait(None));
    }
}
