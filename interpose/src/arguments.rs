//! The arguments of a call in C's form, whichever language made it, and the keys that tell calls apart.

use crate::fortran;
use crate::machine::{Frame, LINK, MOST, REGISTERS};
use crate::places::ArgumentPlaces;
use crate::shapes::{CallShape, KEY, Key, ShapeTable};
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Convention, Export, Kind, Name, Timing, Width};
use mpi_abi::status::Status;
use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The arguments of a call. Values are converted to C's; arrays are as the program passed them.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    words: [usize; MOST],
    pub(crate) call: Call,
    form: Convention,
    /// The positions of its arguments.
    pub(crate) at: &'static ArgumentPlaces,
    /// The constants of this MPI.
    pub(crate) abi: &'static Abi,
}

/// The ABI of the MPI in this process; `None` while none is loaded.
pub(crate) fn abi() -> Option<&'static Abi> {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get().or_else(|| {
        let found = Abi::detect().ok()?;
        Some(ABI.get_or_init(|| found))
    })
}

/// The number of words that the caller passes.
pub(crate) fn words_of(export: Export) -> usize {
    let parameters = match (export.form, export.call()) {
        // Fortran's has a level alone, and no error code.
        (Convention::Fortran | Convention::Descriptors, Call::MPI_Pcontrol) => return 1,
        // Fortran passes no argc and argv.
        (Convention::Fortran, Call::MPI_Init) => 0,
        (Convention::Fortran, Call::MPI_Init_thread) => 2,
        (_, call) => call.parameters().len(),
    };
    match export.form {
        Convention::C => parameters,
        Convention::Fortran | Convention::Descriptors => parameters + 1 + export.call().hidden_lengths(),
    }
}

impl Args {
    pub(crate) fn new(frame: Frame, export: Export, abi: &'static Abi) -> Self {
        let (call, form, mut words) = (export.call(), export.form, frame.words(words_of(export)));
        if form != Convention::C {
            for (word, parameter) in words.iter_mut().zip(call.parameters()) {
                // SAFETY: in Fortran everything comes by reference.
                *word = unsafe { c_value(abi, parameter.kind, *word, form == Convention::Descriptors) };
            }
        }
        Self { words, call, form, at: ArgumentPlaces::of(call), abi }
    }

    /// The index of the first element of an array: 0 in C, 1 in Fortran.
    pub(crate) fn first_index(&self) -> i32 {
        i32::from(self.form != Convention::C)
    }

    fn kind(&self, place: usize) -> Kind {
        self.call.parameters()[place].kind
    }

    /// A C `int`.
    pub(crate) fn int(&self, place: usize) -> i32 {
        self.words[place] as u32 as i32
    }

    /// A number, as wide as the prototype says.
    pub(crate) fn number(&self, place: usize) -> i64 {
        match self.kind(place).width() {
            Width::Int => i64::from(self.int(place)),
            Width::Word | Width::Handle => self.words[place] as i64,
        }
    }

    /// A handle of any type but `MPI_File`.
    pub(crate) fn handle(&self, place: usize) -> usize {
        self.words[place] & self.abi.handle_mask()
    }

    /// An `MPI_File`, which is a pointer in every ABI.
    pub(crate) fn file(&self, place: usize) -> usize {
        self.words[place]
    }

    /// Replaces an address, here and in the frame that is passed on.
    pub(crate) fn replace(&mut self, frame: Frame, place: usize, address: usize) {
        self.words[place] = address;
        frame.set(place, address);
    }

    /// The position of a parameter, if the function has it.
    pub(crate) fn find(&self, name: Name) -> Option<usize> {
        self.call.position(name)
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(&self, place: usize) -> bool {
        self.words[place] == self.abi.constants.in_place
    }

    /// Whether the program ignores the status, or statuses.
    pub(crate) fn ignores_status(&self) -> bool {
        let ignore = &self.abi.constants;
        [0, ignore.status_ignore, ignore.statuses_ignore].contains(&self.words[self.at.status.place()])
    }

    /// The handle at `index` of an array, or behind an address (`index` 0).
    ///
    /// # Safety
    /// The array must have such an element.
    pub(crate) unsafe fn handle_at(&self, place: usize, index: usize) -> usize {
        let address = self.words[place];
        let kind = self.kind(place).target().unwrap_or(Kind::Request);
        // SAFETY: the contract.
        unsafe {
            match self.form {
                Convention::C if kind == Kind::File => *(address as *const usize).add(index),
                Convention::C => {
                    self.abi.read_handle((address as *const u8).add(index * self.abi.handle_size))
                }
                _ => fortran::c_handle(self.abi, kind, *(address as *const i32).add(index)),
            }
        }
    }

    /// The number at `index` of an array, as wide as the prototype says.
    ///
    /// # Safety
    /// The array must have such an element.
    pub(crate) unsafe fn number_at(&self, place: usize, index: usize) -> i64 {
        let address = self.words[place];
        // SAFETY: the contract.
        unsafe {
            match self.kind(place) {
                Kind::BigCountArray
                | Kind::AintArray
                | Kind::AintDisplArray
                | Kind::AintPtr
                | Kind::BigCountPtr => *(address as *const i64).add(index),
                _ => i64::from(*(address as *const i32).add(index)),
            }
        }
    }

    /// The status at `index`, unless the program ignores statuses.
    ///
    /// # Safety
    /// The call must have written it.
    pub(crate) unsafe fn status_at(&self, index: usize) -> Option<Status<'static>> {
        if self.ignores_status() {
            return None;
        }
        let first = self.words[self.at.status.place()] as *const u8;
        let address = first.wrapping_add(index * self.abi.status.size);
        // SAFETY: the contract; a Fortran status has the same layout.
        Some(unsafe { Status::at(address, self.abi) })
    }

    /// A string.
    ///
    /// # Safety
    /// The program must have passed a string.
    pub(crate) unsafe fn text(&self, place: usize) -> Cow<'static, str> {
        let address = self.words[place];
        if self.form == Convention::C {
            // SAFETY: the contract.
            return unsafe { CStr::from_ptr(address as *const std::ffi::c_char) }.to_string_lossy();
        }
        let parameters = self.call.parameters();
        let before = parameters[..place].iter().filter(|parameter| parameter.kind.is_string()).count();
        // SAFETY: the contract; the lengths of strings follow the error code.
        String::from_utf8_lossy(unsafe { fortran::text(address, self.words[parameters.len() + 1 + before]) })
    }
}

/// Converts a Fortran argument to C's form.
///
/// # Safety
/// It must be an argument of this kind.
pub(crate) unsafe fn c_value(abi: &Abi, kind: Kind, word: usize, descriptors: bool) -> usize {
    // SAFETY: the contract.
    unsafe {
        match kind {
            Kind::Buffer if descriptors => fortran::c_address(abi, fortran::base(word)),
            Kind::StatusPtr | Kind::StatusArray if word == 0 => abi.constants.status_ignore,
            Kind::Buffer | Kind::StatusPtr | Kind::StatusArray => fortran::c_address(abi, word),
            Kind::BigCount | Kind::Aint | Kind::Offset => *(word as *const i64) as usize,
            kind if kind.is_handle() => fortran::c_handle(abi, kind, *(word as *const i32)),
            kind if kind.width() == Width::Int => *(word as *const i32) as usize,
            _ => word,
        }
    }
}

/// Selects the arguments that tell calls of a function apart: all values; of buffers only whether they are `MPI_IN_PLACE`.
pub(crate) struct KeyPlan {
    /// Common part of all keys: twice the export's number, plus two.
    name: u32,
    form: Convention,
    /// The slot of the first significant argument.
    first: usize,
    /// From there on, by slot: the significant bits.
    masks: [u64; KEY],
    /// Slots from the first to the last significant argument.
    count: usize,
    /// The slot of a send buffer and the address `MPI_IN_PLACE`; 0: the function has no such buffer.
    in_place: (u8, usize),
    abi: &'static Abi,
}

/// Significant words of the most frequent calls: sends, receives, broadcasts, reductions to all.
const FEW: usize = 5;

impl KeyPlan {
    /// Returns `None` for functions whose calls have no shapes, or too many arguments.
    pub(crate) fn new(number: usize, abi: &'static Abi) -> Option<Self> {
        let Export { form, .. } = Export::get(number);
        let call = Export::get(number).call();
        if !has_shapes(call) {
            return None;
        }
        let mut masks = [0; KEY];
        let mut in_place = (0, 0);
        for (place, parameter) in call.parameters().iter().enumerate() {
            let kind = parameter.kind;
            let is_narrow = match kind.width() {
                Width::Int => true,
                Width::Handle => form != Convention::C || abi.has_int_handles(),
                Width::Word => form != Convention::C && kind == Kind::File,
            };
            let is_value = kind.is_handle()
                || kind.width() == Width::Int
                || matches!(kind, Kind::BigCount | Kind::Aint | Kind::Offset);
            if parameter.name == Name::Sendbuf {
                in_place = (Frame::slot(place) as u8, abi.constants.in_place);
            } else if is_value && kind != Kind::Vararg {
                *masks.get_mut(place)? = if is_narrow { u32::MAX.into() } else { u64::MAX };
            }
        }
        let first = masks.iter().position(|mask| *mask != 0)?;
        let end = masks.iter().rposition(|mask| *mask != 0)? + 1;
        masks.rotate_left(first);
        Some(Self { name: 2 * (number as u32 + 1), form, first, masks, count: end - first, in_place, abi })
    }

    /// Whether keys consist of at most [`FEW`] words, all in registers and in C's form.
    pub(crate) fn are_short(&self) -> bool {
        self.form == Convention::C
            && self.first + self.count <= REGISTERS
            && self.count <= FEW
            && self.first + FEW <= REGISTERS + LINK
    }

    /// Finds the shape of a call whose keys [are short](Self::are_short).
    #[inline(always)]
    pub(crate) fn find_short(&self, frame: Frame, shapes: ShapeTable) -> Option<CallShape> {
        // The masks of slots beyond the arguments are 0.
        let word = |i| frame.at_alone(self.first + i) as u64 & self.masks[i];
        shapes.find(self.c_name(frame), &std::array::from_fn::<u64, FEW, _>(word))
    }

    #[inline(never)]
    pub(crate) fn find(&self, frame: Frame, shapes: ShapeTable) -> Option<CallShape> {
        let Key { name, words } = self.key(frame);
        shapes.find(name, &words)
    }

    pub(crate) fn key(&self, frame: Frame) -> Key {
        let mut words = [0; KEY];
        for (i, (word, mask)) in words.iter_mut().zip(self.masks).take(self.count).enumerate() {
            let given = frame.word(self.first + i);
            // SAFETY: Fortran passes values by reference; masks say how wide they are.
            *word = unsafe {
                match (self.form, mask) {
                    (Convention::C, _) => given as u64 & mask,
                    (_, 0) => 0,
                    (_, u64::MAX) => *(given as *const u64),
                    _ => u64::from(*(given as *const u32)),
                }
            };
        }
        let name = if self.form == Convention::C { self.c_name(frame) } else { self.fortran_name(frame) };
        Key { name, words }
    }

    /// The name part of a C call's key.
    #[inline(always)]
    fn c_name(&self, frame: Frame) -> u32 {
        let (slot, in_place) = self.in_place;
        self.name | u32::from(in_place != 0 && frame.at(slot.into()) == in_place)
    }

    /// The name part of a Fortran call's key.
    fn fortran_name(&self, frame: Frame) -> u32 {
        let (slot, in_place) = self.in_place;
        // SAFETY: a buffer, if there is such an argument.
        let address = || unsafe {
            c_value(self.abi, Kind::Buffer, frame.at(slot.into()), self.form == Convention::Descriptors)
        };
        self.name | u32::from(in_place != 0 && address() == in_place)
    }
}

/// Whether the record of a call depends only on its arguments.
fn has_shapes(call: Call) -> bool {
    use Category::*;
    let has = |kind: Kind| call.parameters().iter().any(|parameter| parameter.kind == kind);
    let by_lists = has(Kind::CountArray) || has(Kind::BigCountArray) || has(Kind::DatatypeArray);
    let matched = has(Kind::MessagePtr);
    match (call.category(), call.timing()) {
        (_, Timing::Persistent) => false,
        (SendRecv, Timing::Immediate) => false,
        (Send | Recv | SendRecv | Rma | Io, _) => !matched,
        (Collective | NeighborCollective, _) => !by_lists,
        (RmaSync, _) => !has(Kind::Group) && !has(Kind::IntPtr),
        _ => false,
    }
}
