//! The tool: which calls it takes over, and the communicators of its own.

use crate::arguments::Arguments;
use crate::demand::{Bytes, Data, Demand};
use crate::messages::{Code, Messages};
use crate::run::Run;
use crate::usage::Usage;
use collectives::choose::{Rule, Table};
use collectives::{Algorithm, Choice, Counts, Cursor, Member, Operation, Sizes};
use mpi_abi::api::{Layout, Mpi};
use mpi_abi::handles::Comm;
use mpi_abi::prototypes::{Call, Category, Timing};
use mpi_abi::symbols::MOST_WORDS;
use mpi_abi::tool::{ChainPlace, Intercepted, Tool};
use std::collections::HashMap;
use std::ffi::CStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The variable that names the table: a built-in one, or a file.
const VARIABLE: &str = "VEF_COLLECTIVES";

/// A communicator of the program's.
#[derive(Clone, Copy)]
struct Known {
    /// This process in it; `None`: nothing is substituted there.
    member: Option<(u32, u32)>,
    /// The tool's own with the same members.
    own: Option<Comm>,
}

/// The tool.
pub(crate) struct Substitute {
    table: Table,
    directory: PathBuf,
    mpi: OnceLock<Option<Mpi>>,
    known: Mutex<HashMap<usize, Known>>,
    usage: Usage,
    writes: OnceLock<bool>,
}

impl Tool for Substitute {
    const NAME: &'static CStr = c"collectives";

    fn open(place: &ChainPlace) -> Result<Self, String> {
        let name = PathBuf::from(std::env::var_os(VARIABLE).unwrap_or_default());
        let table = match name.to_str().and_then(Table::builtin) {
            Some(table) => table,
            None if name.as_os_str().is_empty() => {
                return Err(format!("{VARIABLE} names no table of algorithms"));
            }
            None => {
                let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", name.display());
                let text = std::fs::read_to_string(&name).map_err(|error| wrong(&error))?;
                Table::from_toml(&text).map_err(|error| wrong(&error))?
            }
        };
        Ok(Self {
            table,
            directory: place.directory.clone(),
            mpi: OnceLock::new(),
            known: Mutex::default(),
            usage: Usage::default(),
            writes: OnceLock::new(),
        })
    }

    fn intercepts(&self, call: Call) -> bool {
        call.category() == Category::CommFree
            || operation(call).is_some_and(|operation| !self.table.rules(operation).is_empty())
    }

    fn call(&self, call: &mut Intercepted<'_>) -> i32 {
        let mut words = [0; MOST_WORDS];
        let given = call.words();
        words[..given.len()].copy_from_slice(given);
        let words = &words[..given.len()];
        let Some(mpi) = self.mpi() else { return call.pass_on() };
        let Some(operation) = operation(call.function()) else {
            return self.free(mpi, call, words[0] as *const u8);
        };
        if call.is_shown() {
            // The other ranks substitute their calls and could not know that this one does not.
            let line = format!(
                "vef: collectives: {} of a Fortran array section with holes cannot be substituted; the program ends\n",
                call.function().name()
            );
            let _ = std::io::stderr().write_all(line.as_bytes());
            // Launchers that see an abort may end before they have passed on what was printed.
            std::thread::sleep(Duration::from_millis(500));
            let _ = mpi.abort(mpi.abi().comm_world(), 1);
        }
        // SAFETY: the program's arguments.
        let arguments = unsafe { Arguments::new(call.function(), words, mpi.abi()) };
        match self.substitute(mpi, call, operation, arguments) {
            Ok(Some(done)) => {
                if let Err(code) = done {
                    // As MPI's own function does; a handler that ends the program does not return.
                    let _ = mpi.call_errhandler(arguments.comm(), code);
                    return code;
                }
                mpi.abi().constants.success
            }
            Ok(None) => call.pass_on(),
            // MPI has called the error handler already.
            Err(code) => code,
        }
    }

    fn close(&self) {
        if self.writes.get() == Some(&true) {
            // The program's run does not depend on it; `vef run` says when the file is not there.
            let _ = self.usage.write(&self.directory);
        }
    }
}

/// The operation of a blocking collective.
fn operation(call: Call) -> Option<Operation> {
    if call.category() != Category::Collective || call.timing() != Timing::Blocking {
        return None;
    }
    let name = call.name().strip_prefix("MPI_")?;
    Operation::named(name.strip_suffix("_c").unwrap_or(name))
}

impl Substitute {
    fn mpi(&self) -> Option<&Mpi> {
        let mpi = self.mpi.get_or_init(|| Mpi::loaded().ok()).as_ref()?;
        self.writes.get_or_init(|| mpi.world_rank() == Ok(0));
        Some(mpi)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<usize, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries a call out by a schedule, if there is one for it. `Ok(None)`: it is left to MPI, as all members of the communicator
    /// decide.
    ///
    /// # Errors
    /// The code with which MPI has refused to make a communicator from the program's.
    fn substitute(
        &self,
        mpi: &Mpi,
        call: &Intercepted<'_>,
        operation: Operation,
        arguments: Arguments<'_>,
    ) -> Result<Option<Result<(), Code>>, Code> {
        let function = call.function();
        let left = |why: &str| {
            self.usage.count(function, Err(why));
            Ok(None)
        };
        let comm = arguments.comm();
        let Some((rank, ranks)) = self.member(mpi, comm) else { return left("communicator") };
        let Some(demand) = Demand::of(mpi, operation, arguments, (rank, ranks)) else {
            return left("arguments");
        };
        let unit = match (&demand.op, &demand.input) {
            (Some(_), Some(Data { blocks, .. })) => u32::try_from(blocks[0].layout.size).unwrap_or(0),
            _ => 1,
        };
        if unit == 0 {
            return left("datatype");
        }
        let keeps_order = match demand.op {
            Some(op) => mpi.op_is_commutative(op) == Ok(false),
            None => false,
        };
        let member = Member { operation, ranks, rank, root: demand.root, unit };
        let decide = |sizes: Sizes<'_>| {
            let acceptable = |choice: &Choice| !keeps_order || choice.keeps_order(operation, demand.root);
            self.table.decide(&member, sizes, acceptable)
        };
        let mut counts = None;
        let mut choice = None;
        if let Bytes::AtRoot { own, all } = &demand.bytes {
            let mut bytes = all.clone().unwrap_or_else(|| {
                let mut bytes = vec![0; ranks as usize];
                bytes[rank as usize] = *own;
                bytes
            });
            if self.table.rules(operation).iter().all(needs_only_own_bytes) {
                choice = decide(Sizes::Sums { send: 0, recv: 0 });
            } else {
                let own = self.own(mpi, call, comm)?;
                if let Err(code) = share(mpi, call, own, (rank, demand.root), &mut bytes) {
                    return Ok(Some(Err(code)));
                }
                counts = Counts::new(bytes.iter().copied()).ok();
                choice = counts.as_ref().and_then(|counts| decide(Sizes::Blocks(counts)));
            }
            counts = counts.or_else(|| Counts::new(bytes).ok());
        }
        let sizes = match (&demand.bytes, &counts) {
            (Bytes::Same(bytes), _) => Sizes::Bytes(*bytes),
            (Bytes::Blocks(counts), _) | (Bytes::AtRoot { .. }, Some(counts)) => Sizes::Blocks(counts),
            (Bytes::Pairs { send, recv }, _) => Sizes::Pairs { send, recv },
            (Bytes::AtRoot { .. }, None) => return left("sizes"),
        };
        let Some(choice) = choice.or_else(|| match demand.bytes {
            Bytes::AtRoot { .. } => None,
            _ => decide(sizes),
        }) else {
            return left("no rule");
        };
        let sorted = match sizes {
            Sizes::Blocks(counts) if choice.algorithm.sorts() => {
                counts.clone().sorted(demand.root, choice.order).ok()
            }
            _ => None,
        };
        let sizes = sorted.as_ref().map_or(sizes, Sizes::Blocks);
        let Ok(cursor) = Cursor::new(member, choice, sizes) else { return left("no schedule") };
        let own = self.own(mpi, call, comm)?;
        self.usage.count(function, Ok(&choice));
        let run = Run::new((mpi, own, Messages::new(call, mpi, own)), (member, sizes), &demand);
        // SAFETY: the demand of this call.
        Ok(Some(unsafe { run.carry_out(cursor, &demand) }))
    }

    /// (rank, ranks) of this process in a communicator in which collectives can be substituted.
    fn member(&self, mpi: &Mpi, comm: Comm) -> Option<(u32, u32)> {
        if comm.word() == mpi.abi().predefined.comm_null {
            return None;
        }
        if let Some(known) = self.known().get(&comm.word()) {
            return known.member;
        }
        let member = match mpi.comm_is_inter(comm) {
            Ok(false) => {
                let (rank, ranks) = (mpi.comm_rank(comm).ok()?, mpi.comm_size(comm).ok()?);
                Some((rank as u32, ranks as u32)).filter(|&(_, ranks)| ranks > 1)
            }
            Ok(true) => None,
            // An invalid handle, which MPI may give to a communicator later.
            Err(_) => return None,
        };
        self.known().insert(comm.word(), Known { member, own: None });
        member
    }

    /// The tool's own communicator with the members of one of the program's; collective where there is none yet. Not made by
    /// `MPI_Comm_dup`, which would call what the program has attached to its communicator.
    fn own(&self, mpi: &Mpi, call: &Intercepted<'_>, comm: Comm) -> Result<Comm, Code> {
        if let Some(Known { own: Some(own), .. }) = self.known().get(&comm.word()) {
            return Ok(*own);
        }
        let abi = mpi.abi();
        let mut own = 0usize;
        // Equal colours and keys: all ranks in their old order.
        let words = [comm.word(), 0, 0, &raw mut own as usize];
        // SAFETY: the function's arguments.
        let code = unsafe { call.call_next(Call::MPI_Comm_split, &words) };
        if code != abi.constants.success {
            return Err(code);
        }
        // SAFETY: the call has written a communicator there.
        let own = unsafe { Comm::from_word(abi.read_handle((&raw const own).cast())) };
        // Errors come back as codes and become those of the program's communicator.
        let _ = mpi.return_errors(own);
        if let Some(known) = self.known().get_mut(&comm.word()) {
            known.own = Some(own);
        }
        Ok(own)
    }

    /// The program frees a communicator. Its entry goes afterwards: MPI calls the program's delete callbacks, which may use the
    /// communicator, and may refuse to free it.
    fn free(&self, mpi: &Mpi, call: &mut Intercepted<'_>, place: *const u8) -> i32 {
        // SAFETY: the argument of MPI_Comm_free is the address of a communicator.
        let comm = unsafe { mpi.abi().read_handle(place) };
        let code = call.pass_on();
        if code != mpi.abi().constants.success {
            return code;
        }
        let known = self.known().remove(&comm);
        if let Some(own) = known.and_then(|known| known.own) {
            let mut word = own.word();
            // SAFETY: the function's argument; nothing uses the communicator any more.
            unsafe { call.call_next(Call::MPI_Comm_free, &[&raw mut word as usize]) };
        }
        code
    }
}

/// Whether a rule of gatherv or scatterv can be followed without knowing what the other ranks have.
fn needs_only_own_bytes(rule: &Rule) -> bool {
    let bounds = (rule.min_bytes, rule.max_bytes, rule.min_total, rule.max_total);
    rule.algorithm == Algorithm::Linear && bounds == (0, u64::MAX, 0, u64::MAX)
}

/// Broadcasts the root's numbers of bytes, one for each rank.
fn share(
    mpi: &Mpi,
    call: &Intercepted<'_>,
    own: Comm,
    (rank, root): (u32, u32),
    numbers: &mut [u64],
) -> Result<(), Code> {
    let bytes = 8 * numbers.len() as u64;
    let layout = Layout { size: 1, extent: 1, true_lower: 0, true_extent: 1, is_plain: true };
    let (at, datatype) = (numbers.as_mut_ptr() as usize, mpi.abi().byte());
    let block = crate::demand::Block { at, count: bytes, datatype, layout };
    let operation = Operation::Bcast;
    let demand = Demand {
        operation,
        root,
        bytes: Bytes::Same(bytes),
        input: None,
        output: Some(Data { blocks: vec![block], in_place: false }),
        op: None,
    };
    let member = Member { operation, ranks: numbers.len() as u32, rank, root, unit: 1 };
    let choice = Choice::plain(Algorithm::Binomial);
    let sizes = Sizes::Bytes(bytes);
    let cursor = Cursor::new(member, choice, sizes).map_err(|_| mpi_abi::ERR_NO_SUCH_FUNCTION)?;
    let run = Run::new((mpi, own, Messages::new(call, mpi, own)), (member, sizes), &demand);
    // SAFETY: the numbers are there until it is over.
    unsafe { run.carry_out(cursor, &demand) }
}
