//! From a row of the table of prototypes to a wrapper: arguments by name, and the common frame of all calls.

use crate::clock;
use crate::comms::Comm;
use crate::hooks::message_came;
use crate::lane::{self, Lane};
use crate::shapes::{AnyKey, Function, Shape};
use crate::tracer::{Shared, SharedGuard};
use crate::types::Type;
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category};
use mpi_abi::status::Status;
use std::marker::PhantomData;
use std::ptr::NonNull;
use vef_format::capture::encode::can_be_shape;
use vef_format::capture::event::{Action, Detail, RequestId};
use vef_format::units::Bytes;

/// One function: what the table says of it, known at compile time.
pub(crate) trait Row {
    const CALL: Call;
    const NAMES: &'static [&'static str];
    const KINDS: &'static [Kind];
}

/// How arguments are passed: by C's rules or Fortran's.
pub(crate) trait Language {
    /// What the first element of an array is called.
    const FIRST_INDEX: i32;

    /// A C `int` (or Fortran `INTEGER`).
    ///
    /// # Safety
    /// `word` is what the program passed for one.
    unsafe fn int(word: usize) -> i32;

    /// An `MPI_Count`, `MPI_Aint` or `MPI_Offset`.
    ///
    /// # Safety
    /// As [`Language::int`].
    unsafe fn long(word: usize) -> i64;

    /// A handle that is passed by value in C, as a word of C.
    ///
    /// # Safety
    /// As [`Language::int`].
    unsafe fn handle(abi: &Abi, kind: Kind, word: usize) -> usize;

    /// Such a handle as the language has it: to be told apart from others of its kind, no more.
    ///
    /// # Safety
    /// As [`Language::int`].
    unsafe fn raw_handle(abi: &Abi, word: usize) -> u64;

    /// The handle number `index` behind the address `word`, as a word of C.
    ///
    /// # Safety
    /// There must be one that can be read.
    unsafe fn handle_at(abi: &Abi, kind: Kind, word: usize, index: usize) -> usize;

    /// Appends the `count` handles behind the address `word`.
    ///
    /// # Safety
    /// There must be as many that can be read.
    #[inline(always)]
    unsafe fn handles(abi: &Abi, kind: Kind, word: usize, count: usize, list: &mut Vec<usize>) {
        // SAFETY: the contract.
        list.extend((0..count).map(|i| unsafe { Self::handle_at(abi, kind, word, i) }));
    }

    /// Whether the address stands for "no status wanted".
    fn ignores_status(abi: &Abi, word: usize) -> bool;

    /// Whether the address stands for "no statuses wanted".
    fn ignores_statuses(abi: &Abi, word: usize) -> bool;

    /// Whether the address of a buffer is `MPI_IN_PLACE`.
    fn is_in_place(abi: &Abi, word: usize) -> bool;
}

/// The place of an argument in its row; at compile time.
pub(crate) const fn find(names: &[&str], wanted: &[&str]) -> Option<usize> {
    let mut i = 0;
    while i < names.len() {
        let mut w = 0;
        while w < wanted.len() {
            if same(names[i].as_bytes(), wanted[w].as_bytes()) {
                return Some(i);
            }
            w += 1;
        }
        i += 1;
    }
    None
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while a.len() == b.len() && i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    a.len() == b.len()
}

/// The arguments of one call of function `R`, passed in language `L`, by their names in the standard.
pub(crate) struct Args<'a, R, L> {
    words: &'a [usize],
    pub(crate) abi: &'static Abi,
    row: PhantomData<(R, L)>,
}

macro_rules! arguments {
    ($($method:ident: $getter:ident -> $type:ty = $($name:literal)|+;)*) => { $(
        /// The argument of that name.
        #[inline(always)]
        pub(crate) fn $method(&self) -> $type {
            // Branches for other functions of the category are never taken, but must compile.
            match const { find(R::NAMES, &[$($name),+]) } {
                Some(index) => self.$getter(index),
                None => {
                    debug_assert!(false, "{} has no {}", R::CALL.name(), stringify!($method));
                    Default::default()
                }
            }
        }
    )* };
}

impl<'a, R: Row, L: Language> Args<'a, R, L> {
    #[inline(always)]
    pub(crate) fn new(words: &'a [usize], abi: &'static Abi) -> Self {
        Self { words, abi, row: PhantomData }
    }

    arguments! {
        count: number -> i64 = "count" | "sendcount" | "origin_count";
        recvcount: number -> i64 = "recvcount" | "count";
        datatype: handle -> usize = "datatype" | "sendtype" | "origin_datatype";
        recvtype: handle -> usize = "recvtype" | "datatype";
        dest: int -> i32 = "dest";
        source: int -> i32 = "source";
        tag: int -> i32 = "tag" | "sendtag";
        recvtag: int -> i32 = "recvtag";
        root: int -> i32 = "root";
        comm: handle -> usize = "comm" | "comm_old" | "local_comm" | "intercomm";
        raw_comm: raw_handle -> u64 = "comm";
        raw_datatype: raw_handle -> u64 = "datatype" | "sendtype";
        raw_recvtype: raw_handle -> u64 = "recvtype" | "datatype";
        sendbuf: word -> usize = "sendbuf";
        sendcounts: word -> usize = "sendcounts";
        recvcounts: word -> usize = "recvcounts";
        sendtypes: word -> usize = "sendtypes";
        recvtypes: word -> usize = "recvtypes";
        request: word -> usize = "request";
        requests: word -> usize = "array_of_requests" | "request";
        new_comm: word -> usize
            = "newcomm" | "comm_cart" | "comm_graph" | "comm_dist_graph" | "newintercomm" | "newintracomm";
        freed_comm: word -> usize = "comm";
        freed_type: word -> usize = "datatype";
        message: word -> usize = "message";
        status: word -> usize = "status" | "array_of_statuses";
        flag: word -> usize = "flag";
        index: word -> usize = "indx" | "outcount";
        indices: word -> usize = "array_of_indices";
        length: int -> i32 = "count" | "incount";
        error_code: int -> i32 = "errorcode";
        partitions: int -> i32 = "partitions";
        color: int -> i32 = "color";
        key: int -> i32 = "key";
    }

    /// The request number `index` behind the address `word`.
    #[inline(always)]
    pub(crate) fn handle_at(&self, kind: Kind, word: usize, index: usize) -> usize {
        // SAFETY: the program passed an array that long, or a place with one handle.
        unsafe { L::handle_at(self.abi, kind, word, index) }
    }

    /// The number `index` of an array of counts.
    #[inline(always)]
    pub(crate) fn number_at(&self, word: usize, index: usize) -> i64 {
        let large = const { has_kind(R::KINDS, Kind::BigCountArray) };
        // SAFETY: the program passed an array with an element for each rank, of the width that the table says.
        unsafe {
            match large {
                true => *(word as *const i64).add(index),
                false => i64::from(*(word as *const i32).add(index)),
            }
        }
    }

    /// The `int` number `index` behind an output's address.
    #[inline(always)]
    pub(crate) fn int_at(&self, word: usize, index: usize) -> i32 {
        // SAFETY: the call has succeeded and has written it.
        unsafe { *(word as *const i32).add(index) }
    }

    /// The status number `index`, unless `word` stands for none.
    #[inline(always)]
    pub(crate) fn status_at(&self, word: usize, index: usize) -> Option<Status<'static>> {
        if word == 0 || L::ignores_status(self.abi, word) {
            return None;
        }
        // SAFETY: the program (or the recorder) passed room for as many; a Fortran status has the same layout.
        Some(unsafe { Status::at((word as *const u8).add(index * self.abi.status.size), self.abi) })
    }

    #[inline(always)]
    fn int(&self, index: usize) -> i32 {
        // SAFETY: the table says what this argument is, and the program passed it.
        unsafe { L::int(self.words[index]) }
    }

    #[inline(always)]
    fn number(&self, index: usize) -> i64 {
        // SAFETY: as above; `count` is an `int` or an `MPI_Count` as the table says.
        unsafe {
            match R::KINDS[index] {
                Kind::BigCount => L::long(self.words[index]),
                _ => i64::from(L::int(self.words[index])),
            }
        }
    }

    #[inline(always)]
    fn handle(&self, index: usize) -> usize {
        // SAFETY: as above.
        unsafe { L::handle(self.abi, R::KINDS[index], self.words[index]) }
    }

    #[inline(always)]
    fn raw_handle(&self, index: usize) -> u64 {
        // SAFETY: as above.
        unsafe { L::raw_handle(self.abi, self.words[index]) }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> usize {
        self.words[index]
    }
}

/// Whether a function has an argument of this kind.
const fn has_kind(kinds: &[Kind], wanted: Kind) -> bool {
    let mut i = 0;
    while i < kinds.len() {
        if kinds[i] as u8 == wanted as u8 {
            return true;
        }
        i += 1;
    }
    false
}

/// A call that has been made: what to record it with.
pub(crate) struct Done<'a> {
    pub(crate) lane: &'a mut Lane,
    pub(crate) shared: SharedGuard,
    pub(crate) call: Call,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Done<'_> {
    /// Records what the call did.
    #[inline(always)]
    pub(crate) fn put(&mut self, action: &Action<'_>) {
        self.lane.put(self.start, self.end, action, self.lane.tracer.slot(self.call));
        // A call of several records took its time once.
        self.start = self.end;
    }

    /// As [`Done::put`], of a call that makes requests with `flags`, if any, and whose arguments gave `key`.
    pub(crate) fn put_first<R: Row, L: Language>(
        &mut self,
        key: Option<&impl AnyKey>,
        action: &Action<'_>,
        flags: u8,
    ) {
        match key {
            Some(key) if can_be_shape(action) => {
                let call = self.lane.tracer.slot(self.call);
                self.lane.put_first((self.start, self.end), action, call, Function::of::<R, L>(), key, flags);
                self.start = self.end;
            }
            _ => self.put(action),
        }
    }

    /// Records a call that a trace cannot represent.
    #[inline(always)]
    pub(crate) fn put_other(&mut self, bytes: Bytes) {
        // By its parts: what has an address cannot stay in registers.
        put_other(self.lane, self.call, self.start, self.end, bytes);
        self.start = self.end;
    }

    /// As [`Done::put_other`], under the name of another call that this one stands for.
    pub(crate) fn put_other_as(&mut self, call: Call, bytes: Bytes) {
        put_other(self.lane, call, self.start, self.end, bytes);
        self.start = self.end;
    }

    /// The communicator behind a handle.
    #[inline(always)]
    pub(crate) fn comm(&mut self, handle: usize) -> Comm {
        self.shared.comms.get(self.lane, handle)
    }

    /// The datatype behind a handle.
    #[inline(always)]
    pub(crate) fn datatype(&mut self, handle: usize) -> Type {
        self.shared.types.get(self.lane, handle)
    }

    /// The identity of a request that the next record makes.
    #[inline(always)]
    pub(crate) fn next_request(&self) -> RequestId {
        self.lane.next_request().request()
    }
}

#[cold]
#[inline(never)]
fn put_other(lane: &mut Lane, call: Call, start: u64, end: u64, bytes: Bytes) {
    let slot = lane.tracer.slot(call);
    lane.put(start, end, &Action::Other { bytes, detail: Detail::None }, slot);
}

/// Calls `next`, the real function, and `record` after it; `next` alone if nothing is to be recorded. `prepare` comes first and may change what is passed on; what it gives goes to `record`.
#[inline(always)]
pub(crate) fn around<R: Row, L: Language, const N: usize, P>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    prepare: impl FnOnce(&mut Lane, &mut [usize; N], &'static Abi) -> P,
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>, P, i32),
) -> i32 {
    around_in(lane::current(), words, next, prepare, record)
}

/// [`around`] for calls that are looked at also outside the phase that is to be recorded: they say what handles mean, or
/// complete what began within it.
#[inline(always)]
pub(crate) fn around_even_paused<R: Row, L: Language, const N: usize, P>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    prepare: impl FnOnce(&mut Lane, &mut [usize; N], &'static Abi) -> P,
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>, P, i32),
) -> i32 {
    around_in(lane::current().or_else(lane::paused), words, next, prepare, record)
}

#[inline(always)]
fn around_in<R: Row, L: Language, const N: usize, P>(
    lane: Option<NonNull<Lane>>,
    mut words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    prepare: impl FnOnce(&mut Lane, &mut [usize; N], &'static Abi) -> P,
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>, P, i32),
) -> i32 {
    let Some(lane) = lane else { return next(words) };
    // SAFETY: the lane is this thread's, lives for ever, and no other reference to it is alive here: nested calls leave
    // at the test of `inside`.
    let (prepared, abi) = unsafe {
        let lane = &mut *lane.as_ptr();
        if lane.inside {
            return next(words);
        }
        lane.inside = true;
        lane.tracer.count(R::CALL);
        let abi = lane.tracer.mpi.abi();
        (prepare(lane, &mut words, abi), abi)
    };
    let start = clock::now();
    let code = next(words);
    let end = clock::now();
    // SAFETY: as above; the nested calls are over.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    lane.tracer.note(R::CALL, end.wrapping_sub(start), code);
    let shared = lane.tracer.shared();
    record(&mut Done { lane, shared, call: R::CALL, start, end }, &Args::new(&words, abi), prepared, code);
    code
}

/// As [`simply`] for calls that come again and again. One whose arguments give the `key` of an earlier one is not looked into: its
/// record is of the same shape, and then `like` does what else there is to do. Others, and those without a key,
/// go to `first`, which records them by [`Done::put_first`].
#[inline(always)]
pub(crate) fn alike<R: Row, L: Language, const N: usize, K: AnyKey>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    prepare: impl FnOnce(&mut Lane, &mut [usize; N], &'static Abi),
    key: impl FnOnce(&Args<'_, R, L>) -> Option<K>,
    like: impl FnOnce(&mut Lane, &mut Shared, &Args<'_, R, L>, Shape),
    first: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>, Option<&K>),
) -> i32 {
    around::<R, L, N, ()>(words, next, prepare, |done, args, (), code| {
        if code != SUCCESS && !came_in_spite_of::<R>(&done.lane.tracer.mpi, code) {
            return;
        }
        let key = key(args);
        match key.as_ref().and_then(|key| done.lane.shapes.find_anywhere(Function::of::<R, L>(), key)) {
            Some(shape) => {
                done.lane.put_head(done.start, done.end, shape.head());
                like(done.lane, &mut done.shared, args, shape);
            }
            None => first(done, args, key.as_ref()),
        }
    })
}

/// Whether the function receives in the call, and did so although the message was too long.
pub(crate) fn came_in_spite_of<R: Row>(mpi: &mpi_abi::api::Mpi, code: i32) -> bool {
    matches!(R::CALL.category(), Category::Recv | Category::SendRecv) && message_came(mpi, code)
}

/// Remembers the request that a call of a known shape has made.
#[inline(always)]
pub(crate) fn pend_like<R: Row, L: Language>(
    lane: &mut Lane,
    shared: &mut Shared,
    args: &Args<'_, R, L>,
    shape: Shape,
) {
    let request = lane.take_request().with(shape.flags());
    let handle = args.handle_at(Kind::RequestPtr, args.request(), 0);
    shared.requests.insert(handle, request);
}

/// [`around`] for a function whose arguments are passed on as they are, and which is recorded if it succeeded.
#[inline(always)]
pub(crate) fn simply<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>),
) -> i32 {
    around::<R, L, N, ()>(words, next, |_, _, _| (), if_it_succeeded(record))
}

/// [`simply`] in the way of [`around_even_paused`].
#[inline(always)]
pub(crate) fn simply_even_paused<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>),
) -> i32 {
    around_even_paused::<R, L, N, ()>(words, next, |_, _, _| (), if_it_succeeded(record))
}

#[inline(always)]
fn if_it_succeeded<R: Row, L: Language>(
    record: impl FnOnce(&mut Done<'_>, &Args<'_, R, L>),
) -> impl FnOnce(&mut Done<'_>, &Args<'_, R, L>, (), i32) {
    |done, args, (), code| {
        if code == SUCCESS {
            record(done, args);
        }
    }
}

/// `MPI_SUCCESS`: 0 in every ABI.
pub(crate) const SUCCESS: i32 = 0;
