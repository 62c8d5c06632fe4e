//! The arguments of a call as C has them, whichever language it was made in, and what tells a call from others.

use crate::fortran;
use crate::machine::{Frame, MOST};
use crate::shapes::{KEY, Key};
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Export, Form, Kind, Name, Timing, Width};
use mpi_abi::status::Status;
use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The arguments of a call. Values are C's; arrays are as the program passed them.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    words: [usize; MOST],
    call: Call,
    form: Form,
    abi: &'static Abi,
}

/// The ABI of the MPI in this process, once there is one.
pub(crate) fn abi() -> Option<&'static Abi> {
    static ABI: OnceLock<Abi> = OnceLock::new();
    ABI.get().or_else(|| {
        let found = Abi::detect().ok()?;
        Some(ABI.get_or_init(|| found))
    })
}

/// How many words the caller of a name passes.
pub(crate) fn words_of(export: Export) -> usize {
    let parameters = match (export.form, export.call()) {
        // Without argc and argv.
        (Form::Fortran, Call::MPI_Init) => 0,
        (Form::Fortran, Call::MPI_Init_thread) => 2,
        (_, call) => call.parameters().len(),
    };
    match export.form {
        Form::C => parameters,
        Form::Fortran | Form::Descriptors => parameters + 1 + export.call().hidden_lengths(),
    }
}

impl Args {
    /// Those of a call by a name.
    ///
    /// # Safety
    /// They must be in the frame.
    pub(crate) unsafe fn new(frame: Frame, export: Export, abi: &'static Abi) -> Self {
        let (call, form) = (export.call(), export.form);
        // SAFETY: the contract.
        let mut words = unsafe { frame.words(words_of(export)) };
        if form != Form::C {
            for (word, parameter) in words.iter_mut().zip(call.parameters()) {
                // SAFETY: in Fortran everything comes by reference.
                *word = unsafe { c_value(abi, parameter.kind, *word, form == Form::Descriptors) };
            }
        }
        Self { words, call, form, abi }
    }

    /// The function.
    pub(crate) fn call(&self) -> Call {
        self.call
    }

    /// The constants of this MPI.
    pub(crate) fn abi(&self) -> &'static Abi {
        self.abi
    }

    /// What the first element of an array is called.
    pub(crate) fn first_index(&self) -> i32 {
        i32::from(self.form != Form::C)
    }

    fn kind(&self, place: usize) -> Kind {
        self.call.parameters()[place].kind
    }

    /// A C `int`.
    pub(crate) fn int(&self, place: usize) -> i32 {
        self.words[place] as u32 as i32
    }

    /// A number of the width that the prototype says.
    pub(crate) fn number(&self, place: usize) -> i64 {
        match self.kind(place).width() {
            Width::Int => i64::from(self.int(place)),
            Width::Word | Width::Handle => self.words[place] as i64,
        }
    }

    /// A handle.
    pub(crate) fn handle(&self, place: usize) -> usize {
        match self.kind(place).width() {
            Width::Word => self.words[place],
            Width::Int | Width::Handle => self.words[place] & self.abi.handle_mask(),
        }
    }

    /// Replaces an address by ours, also for the call.
    ///
    /// # Safety
    /// The arguments must be those of the frame.
    pub(crate) unsafe fn replace(&mut self, frame: Frame, place: usize, address: usize) {
        self.words[place] = address;
        // SAFETY: the contract.
        unsafe { frame.set(place, address) };
    }

    /// Where a parameter is, which not all functions of a category have.
    pub(crate) fn find(&self, name: Name) -> Option<usize> {
        self.call.position(name)
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(&self, place: usize) -> bool {
        self.words[place] == self.abi.constants.in_place
    }

    /// Whether the program wants no status.
    pub(crate) fn ignores_status(&self, place: usize) -> bool {
        let ignore = &self.abi.constants;
        [0, ignore.status_ignore, ignore.statuses_ignore].contains(&self.words[place])
    }

    /// Handle number `index` of an array, or behind an address.
    ///
    /// # Safety
    /// The array must be longer, or there be a handle.
    pub(crate) unsafe fn handle_at(&self, place: usize, index: usize) -> usize {
        let address = self.words[place];
        let kind = self.kind(place).target().unwrap_or(Kind::Request);
        // SAFETY: the contract.
        unsafe {
            match self.form {
                Form::C if kind == Kind::File => *(address as *const usize).add(index),
                Form::C => self.abi.read_handle((address as *const u8).add(index * self.abi.handle_size)),
                _ => fortran::c_handle(self.abi, kind, *(address as *const i32).add(index)),
            }
        }
    }

    /// Number `index` of an array of numbers, of the width that the prototype says.
    ///
    /// # Safety
    /// The array must be longer.
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

    /// The `int` number `index` behind an output's address.
    ///
    /// # Safety
    /// The call must have written it.
    pub(crate) unsafe fn int_at(&self, place: usize, index: usize) -> i32 {
        // SAFETY: the contract.
        unsafe { *(self.words[place] as *const i32).add(index) }
    }

    /// The status number `index`, unless the program wants none.
    ///
    /// # Safety
    /// If it wants any, there must be as many.
    pub(crate) unsafe fn status_at(&self, place: usize, index: usize) -> Option<Status<'static>> {
        if self.ignores_status(place) {
            return None;
        }
        let address = (self.words[place] as *const u8).wrapping_add(index * self.abi.status.size);
        // SAFETY: the contract; a Fortran status has the same layout.
        Some(unsafe { Status::at(address, self.abi) })
    }

    /// A string.
    ///
    /// # Safety
    /// The program must have passed one.
    pub(crate) unsafe fn text(&self, place: usize) -> Cow<'static, str> {
        let address = self.words[place];
        if self.form == Form::C {
            // SAFETY: the contract.
            return unsafe { CStr::from_ptr(address as *const std::ffi::c_char) }.to_string_lossy();
        }
        let parameters = self.call.parameters();
        let before = parameters[..place].iter().filter(|parameter| parameter.kind.is_string()).count();
        // SAFETY: the contract; its length comes after the place for the error code.
        String::from_utf8_lossy(unsafe { fortran::text(address, self.words[parameters.len() + 1 + before]) })
    }
}

/// What C has in the place of a Fortran argument.
///
/// # Safety
/// It must be one of that kind.
pub(crate) unsafe fn c_value(abi: &Abi, kind: Kind, word: usize, descriptors: bool) -> usize {
    // SAFETY: the contract.
    unsafe {
        match kind {
            Kind::Buffer if descriptors => fortran::buffer(abi, fortran::base(word)),
            Kind::Buffer => fortran::buffer(abi, word),
            Kind::StatusPtr | Kind::StatusArray => fortran::status(abi, word),
            Kind::BigCount | Kind::Aint | Kind::Offset => *(word as *const i64) as usize,
            kind if kind.is_handle() => fortran::c_handle(abi, kind, *(word as *const i32)),
            kind if kind.width() == Width::Int => *(word as *const i32) as usize,
            _ => word,
        }
    }
}

/// Which arguments tell calls by a name from each other: all values, but of buffers only whether they are `MPI_IN_PLACE`.
#[derive(Clone, Copy)]
pub(crate) struct KeyPlan {
    number: usize,
    form: Form,
    words: [KeyWord; KEY],
    /// How many of them there are; the others are 0 in every key.
    count: usize,
    /// The slot of a buffer that may be `MPI_IN_PLACE`.
    in_place: Option<u8>,
    abi: &'static Abi,
}

/// What a word of a key is made of: a value of 64 bits, or two of 32; slots of the frame, and what counts of each.
#[derive(Clone, Copy)]
struct KeyWord {
    low: (u8, u64),
    /// Of what is in the slot, shifted into the upper half.
    high: (u8, u64),
}

impl KeyPlan {
    /// `None`: calls by this name are not alike, or have too many arguments.
    pub(crate) fn new(number: usize, abi: &'static Abi) -> Option<Self> {
        const HALF: u64 = u32::MAX as u64;
        let Export { form, .. } = Export::get(number);
        let call = Export::get(number).call();
        if !has_shapes(call) {
            return None;
        }
        let (mut words, mut narrow) = (Vec::new(), Vec::new());
        let mut in_place = None;
        for (place, parameter) in call.parameters().iter().enumerate() {
            let slot = Frame::slot(place) as u8;
            let kind = parameter.kind;
            let is_value = kind.is_handle()
                || kind.width() == Width::Int
                || matches!(kind, Kind::BigCount | Kind::Aint | Kind::Offset);
            let is_narrow = match kind.width() {
                Width::Int => true,
                Width::Handle => form != Form::C || abi.has_int_handles(),
                Width::Word => form != Form::C && kind == Kind::File,
            };
            if parameter.name == Name::Sendbuf {
                in_place = Some(slot);
            } else if is_value && kind != Kind::Vararg {
                if is_narrow {
                    narrow.push(slot);
                } else {
                    words.push(KeyWord { low: (slot, u64::MAX), high: (0, 0) });
                }
            }
        }
        words.extend(narrow.chunks(2).map(|pair| KeyWord {
            low: (pair[0], HALF),
            high: pair.get(1).map_or((0, 0), |slot| (*slot, !HALF)),
        }));
        if words.len() > KEY {
            return None;
        }
        let count = words.len();
        words.resize(KEY, KeyWord { low: (0, 0), high: (0, 0) });
        let words = words.try_into().ok()?;
        Some(Self { number, form, words, count, in_place, abi })
    }

    /// The key of a call.
    ///
    /// # Safety
    /// Its arguments must be in the frame.
    #[inline(always)]
    pub(crate) unsafe fn key(&self, frame: Frame) -> Key {
        // SAFETY: the contract; slot 0 can always be read.
        unsafe {
            if self.form != Form::C {
                return self.fortran_key(frame);
            }
            let at = |slot: u8| frame.at(slot.into()) as u64;
            let mut words = [0; KEY];
            for (word, KeyWord { low, high }) in words.iter_mut().zip(&self.words[..self.count.min(KEY)]) {
                *word = at(low.0) & low.1 | at(high.0) << 32 & high.1;
            }
            let in_place = self.in_place.is_some_and(|slot| at(slot) == self.abi.constants.in_place as u64);
            Key::new(self.number, in_place, words)
        }
    }

    /// In Fortran values come by reference.
    ///
    /// # Safety
    /// As [`KeyPlan::key`].
    unsafe fn fortran_key(&self, frame: Frame) -> Key {
        // SAFETY: the contract.
        let value = |(slot, mask): (u8, u64)| unsafe {
            match mask {
                0 => 0,
                u64::MAX => *(frame.at(slot.into()) as *const u64),
                _ => u64::from(*(frame.at(slot.into()) as *const u32)),
            }
        };
        let words = self.words.map(|KeyWord { low, high }| value(low) | value(high) << 32);
        let in_place = self.in_place.is_some_and(|slot| {
            // SAFETY: the contract.
            let address = unsafe { frame.at(slot.into()) };
            let address = match self.form {
                // SAFETY: a descriptor.
                Form::Descriptors => unsafe { fortran::base(address) },
                _ => address,
            };
            fortran::buffer(self.abi, address) == self.abi.constants.in_place
        });
        Key::new(self.number, in_place, words)
    }
}

/// Whether the record of a call follows from its arguments.
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
