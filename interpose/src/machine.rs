//! Processor-dependent code: the stubs behind the exported names, the trampolines into Rust, and thread-local data.
//!
//! ```text
//! program ─▶ stub ─▶ NEXT[number] ─▶ the real function
//!                        ╰─────────▶ trampoline ─▶ Rust, with the arguments as a Frame
//! ```
//!
//! While a name has no destination, its stub leads to a trampoline, too.
//!
//! A stub loads its number and jumps. It preserves all registers that pass arguments, so one form serves functions
//! with any arguments. Neither stubs nor [`NEXT`] need a relocation: [`lead_to`] fills it, first when the loader
//! relocates this library, which is before anything can call a stub.

use mpi_abi::prototypes::{Call, Convention, Export};
use mpi_abi::symbols::Words;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{NonNull, null};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The destination of calls by a name, by export number.
pub(crate) static NEXT: [AtomicUsize; Export::COUNT] = [const { AtomicUsize::new(0) }; Export::COUNT];

/// The real function of a name, by export number; 0: not looked up yet.
static REAL: [AtomicUsize; Export::COUNT] = [const { AtomicUsize::new(0) }; Export::COUNT];

/// The trampoline for calls by names that have no destination.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// Leads all names to the trampoline for calls by names that have no destination. Called by the loader: calls no function outside
/// this library.
pub(crate) fn lead_to(first: unsafe extern "C" fn()) {
    FIRST.store(first as usize, Ordering::Release);
    forget_destinations();
}

/// All names get their destinations anew, because other calls are recorded now.
pub(crate) fn forget_destinations() {
    let first = FIRST.load(Ordering::Acquire);
    NEXT.iter().for_each(|next| next.store(first, Ordering::Release));
}

/// The real function of a name; `None`: no loaded library has it.
pub(crate) fn real(number: usize) -> Option<NonNull<c_void>> {
    let known = REAL[number].load(Ordering::Acquire) as *mut c_void;
    NonNull::new(known).or_else(|| {
        let found = mpi_abi::symbols::function(&Export::symbol(number))?;
        REAL[number].store(found.as_ptr() as usize, Ordering::Release);
        Some(found)
    })
}

/// The address of an optional stub if MPI has its function, else null. Called by the loader, which holds its locks and may be in
/// the middle of loading the program.
pub(crate) extern "C" fn resolve(number: usize, stub: *const c_void) -> *const c_void {
    let found = mpi_abi::symbols::search_loaded_objects(Export::symbol(number).to_bytes());
    if found.is_some() { stub } else { null() }
}

/// The export number of a function's C name; `None`: it has no stub.
pub(crate) fn c_name(call: Call) -> Option<usize> {
    static NUMBERS: std::sync::OnceLock<[Option<u16>; Call::COUNT]> = std::sync::OnceLock::new();
    let find = || {
        let mut numbers = [None; Call::COUNT];
        // The name in the standard is the first one.
        for number in (0..Export::COUNT).rev().filter(|&number| Export::get(number).form == Convention::C) {
            numbers[Export::get(number).call() as usize] = Some(number as u16);
        }
        numbers
    };
    NUMBERS.get_or_init(find)[call as usize].map(usize::from)
}

/// Number of arguments passed in registers.
pub(crate) const REGISTERS: usize = if cfg!(target_arch = "x86_64") { 6 } else { 8 };
/// Words between those and the arguments on the stack: frame pointer and return address.
pub(crate) const LINK: usize = 2;

/// The largest number of arguments of an MPI function, including Fortran's additional ones and a tool's layer.
pub(crate) const MOST: usize = mpi_abi::symbols::MOST_WORDS;

/// The arguments of a call, as stored by a trampoline. Only valid arguments of the function
/// to which the frame is passed on may be in it: functions that take a frame rely on this.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Frame(NonNull<usize>);

/// Storage for a frame that no trampoline made.
pub(crate) struct OwnFrame([usize; MOST + LINK]);

impl OwnFrame {
    /// # Safety
    /// The words must be valid arguments of the function to which the frame is passed on.
    pub(crate) unsafe fn new(words: &[usize]) -> Self {
        let mut own = [0; MOST + LINK];
        for (i, word) in words.iter().enumerate() {
            own[Frame::slot(i)] = *word;
        }
        Self(own)
    }

    /// The frame; valid while `self` is not moved.
    pub(crate) fn frame(&mut self) -> Frame {
        Frame(NonNull::from(&mut self.0).cast())
    }
}

impl Frame {
    /// The slot of the argument at `index`.
    #[inline(always)]
    pub(crate) const fn slot(index: usize) -> usize {
        if index < REGISTERS { index } else { index + LINK }
    }

    /// The address of the frame. A call made from within another one has a lower address.
    #[inline(always)]
    pub(crate) fn address(self) -> usize {
        self.0.as_ptr() as usize
    }

    /// The word in a slot of an argument, or in a register's slot without one, which holds any word.
    #[inline(always)]
    pub(crate) fn at(self, slot: usize) -> usize {
        debug_assert!(slot < MOST + LINK);
        // SAFETY: within the storage or the caller's stack.
        unsafe { *self.0.as_ptr().add(slot) }
    }

    /// [`Frame::at`] as a separate load instruction. A combined load of two arguments would stall, because the
    /// trampoline has just stored them one by one.
    #[inline(always)]
    pub(crate) fn at_alone(self, slot: usize) -> usize {
        debug_assert!(slot < MOST + LINK);
        // SAFETY: as in `at`.
        unsafe { self.0.as_ptr().add(slot).read_volatile() }
    }

    /// The argument at `index`.
    #[inline(always)]
    pub(crate) fn word(self, index: usize) -> usize {
        self.at(Self::slot(index))
    }

    /// Replaces the argument at `index`.
    pub(crate) fn set(self, index: usize, word: usize) {
        assert!(index < MOST, "an argument");
        // SAFETY: an argument, which is the callee's to change.
        unsafe { *self.0.as_ptr().add(Self::slot(index)) = word }
    }

    /// The first `count` arguments, of a call that has so many: memory may end behind them.
    pub(crate) fn words(self, count: usize) -> [usize; MOST] {
        let mut words = [0; MOST];
        for (index, word) in words.iter_mut().enumerate().take(count) {
            *word = self.word(index);
        }
        words
    }

    pub(crate) fn return_address(self) -> usize {
        self.at(REGISTERS + 1)
    }

    /// Calls a function with the first `count` arguments.
    ///
    /// # Safety
    /// The frame must be that of a call of a function with this prototype.
    #[inline(always)]
    pub(crate) unsafe fn pass_to(self, function: NonNull<c_void>, count: usize) -> i32 {
        macro_rules! pass {
            ($($index:literal)*) => {
                // SAFETY: the contract; surplus words are ignored.
                unsafe { [$(self.word($index)),*].pass_to(function) }
            };
        }
        match count {
            0..=7 => pass!(0 1 2 3 4 5 6),
            8..=10 => pass!(0 1 2 3 4 5 6 7 8 9),
            _ => pass!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        }
    }
}

/// The largest number of recorders in a chain.
pub(crate) const RECORDERS: usize = 8;

/// Data of a thread; initially zero.
#[repr(C)]
pub(crate) struct ThreadData {
    /// The thread's lane of each recorder, or null.
    pub(crate) lanes: [Cell<*mut c_void>; RECORDERS],
    /// The call that is in the chain of tools.
    pub(crate) chained: Cell<Chained>,
    /// Whether the thread is in a call that starts recording, or in `MPI_Pcontrol`.
    pub(crate) starting: Cell<bool>,
}

/// A call in the chain of tools.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Chained {
    /// Its frame; 0: there is no such call.
    pub(crate) frame: usize,
    /// Its last step, if that is not the C function; null: it is.
    pub(crate) end: *const c_void,
    /// The function, as the program called it.
    pub(crate) call: u16,
    /// Whether MPI runs: exceptions are those of the program's callbacks.
    pub(crate) in_mpi: bool,
    /// Whether MPI has returned from the function, and with which code.
    pub(crate) has_returned: bool,
    pub(crate) code: i32,
}

impl Chained {
    pub(crate) const NONE: Self =
        Self { frame: 0, end: null(), call: 0, in_mpi: false, has_returned: false, code: 0 };
}

/// Restores [`ThreadData::chained`] when it is dropped, also during unwinding.
pub(crate) struct ChainedGuard(Chained);

impl ChainedGuard {
    pub(crate) fn enter(state: Chained) -> Self {
        Self(thread().chained.replace(state))
    }
}

impl Drop for ChainedGuard {
    fn drop(&mut self) {
        thread().chained.set(self.0);
    }
}

/// Bytes reserved for [`ThreadData`].
const THREAD: usize = 96;
const _: () = assert!(size_of::<ThreadData>() <= THREAD);

// Static TLS, because this library is loaded with the program: two instructions reach it, it needs no allocation, and
// it exists until the thread's end.
std::arch::global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 16",
    ".globl vef_thread",
    ".hidden vef_thread",
    ".type vef_thread, @object",
    ".size vef_thread, {size}",
    "vef_thread: .zero {size}",
    ".popsection",
    size = const THREAD,
);

#[inline(always)]
pub(crate) fn thread() -> &'static ThreadData {
    let place: *const ThreadData;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the variable's TLS offset and the thread pointer.
    unsafe {
        std::arch::asm!(
            "mov {place}, qword ptr fs:[0]",
            "add {place}, qword ptr [rip + vef_thread@GOTTPOFF]",
            place = out(reg) place,
            options(pure, readonly, nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "mrs {thread}, tpidr_el0",
            "adrp {place}, :gottprel:vef_thread",
            "ldr {place}, [{place}, :gottprel_lo12:vef_thread]",
            "add {place}, {place}, {thread}",
            thread = out(reg) _,
            place = out(reg) place,
            options(pure, readonly, nostack)
        );
    }
    // SAFETY: the variable, which other threads do not reach: a `ThreadData` is not `Sync`.
    unsafe { &*place }
}

/// Defines the stub of a name: `stub! { "MPI_Send" 17 }`. Stubs and trampolines preserve the number of the name in a register.
macro_rules! stub {
    ($symbol:literal $number:literal) => {
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn stub() {
                ::std::arch::naked_asm!(
                    #[cfg(target_arch = "x86_64")]
                    "mov r10d, {number}
        jmp qword ptr [rip + {next} + 8 * {number}]",
                    #[cfg(target_arch = "aarch64")]
                    "adrp x16, {next} + 8 * {number}
                    ldr x16, [x16, :lo12:{next} + 8 * {number}]
                    mov w17, {number}
                    br x16",
                    next = sym $crate::machine::NEXT,
                    number = const $number,
                )
            }
        };
    };
}

/// A [`stub`] of a name that some MPIs lack. The loader must not find such a name, neither for a weak reference nor
/// for `dlsym`. The stub begins with a mark, which `absent` looks for, and the distance to the function that the
/// loader calls when it binds a reference; that returns null or the stub's address.
macro_rules! optional_stub {
    ($symbol:literal $number:literal) => {
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn optional_stub() {
                ::std::arch::naked_asm!(
                    // The mark is a long NOP; the distance is its displacement.
                    #[cfg(target_arch = "x86_64")]
                    "2: .byte 0x0f, 0x1f, 0x80
                    .long 3f - 2b
                    mov r10d, {number}
                    jmp qword ptr [rip + {next} + 8 * {number}]
                    3: mov edi, {number}
                    lea rsi, [rip + 2b]
                    jmp {resolve}",
                    #[cfg(target_arch = "aarch64")]
                    "2: b 4f
                    .long 3f - 2b
                    4: adrp x16, {next} + 8 * {number}
                    ldr x16, [x16, :lo12:{next} + 8 * {number}]
                    mov w17, {number}
                    br x16
                    3: mov w0, {number}
                    adr x1, 2b
                    b {resolve}",
                    next = sym $crate::machine::NEXT,
                    number = const $number,
                    resolve = sym $crate::machine::resolve,
                )
            }
        };
    };
}

/// The first bytes of an optional stub.
#[cfg(target_arch = "x86_64")]
pub(crate) const MARK: &[u8] = &[0x0f, 0x1f, 0x80];
/// The first word of an optional stub: a branch over the next word.
#[cfg(target_arch = "aarch64")]
pub(crate) const MARK: &[u8] = &0x1400_0002u32.to_le_bytes();

/// A Rust function behind a trampoline: it gets the number of the name, the call's arguments, and the thread's lane of recorder 0.
pub(crate) type Entered = extern "C-unwind" fn(usize, Frame, *mut c_void) -> i32;

/// Defines a trampoline: it calls a Rust function of type [`Entered`] and returns its result. Exceptions and panics pass through.
macro_rules! trampoline {
    ($(#[$doc:meta])* $name:ident => $function:path) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name() {
            ::std::arch::naked_asm!(
                #[cfg(target_arch = "x86_64")]
                ".cfi_startproc
                push rbp
                .cfi_def_cfa_offset 16
                .cfi_offset rbp, -16
                mov rbp, rsp
                .cfi_def_cfa_register rbp
                push r9
                push r8
                push rcx
                push rdx
                push rsi
                push rdi
                mov edi, r10d
                mov rsi, rsp
                mov rdx, qword ptr [rip + vef_thread@GOTTPOFF]
                mov rdx, qword ptr fs:[rdx]
                call {function}
                leave
                .cfi_def_cfa rsp, 8
                ret
                .cfi_endproc",
                #[cfg(target_arch = "aarch64")]
                ".cfi_startproc
                stp x29, x30, [sp, #-16]!
                .cfi_def_cfa_offset 16
                .cfi_offset x29, -16
                .cfi_offset x30, -8
                mov x29, sp
                .cfi_def_cfa x29, 16
                stp x6, x7, [sp, #-16]!
                stp x4, x5, [sp, #-16]!
                stp x2, x3, [sp, #-16]!
                stp x0, x1, [sp, #-16]!
                mov w0, w17
                mov x1, sp
                mrs x3, tpidr_el0
                adrp x2, :gottprel:vef_thread
                ldr x2, [x2, :gottprel_lo12:vef_thread]
                ldr x2, [x2, x3]
                bl {function}
                mov sp, x29
                ldp x29, x30, [sp], #16
                .cfi_def_cfa sp, 0
                ret
                .cfi_endproc",
                function = sym $function,
            )
        }
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("stubs and trampolines are written for x86-64 and AArch64");

pub(crate) use {optional_stub, stub, trampoline};
