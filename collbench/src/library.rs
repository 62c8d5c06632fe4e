//! Operations and algorithms of the user's, from shared libraries: `include/vef_bench.h` is what they are written against.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use collectives::{Buffer, Member, Operation, Sizes};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mpi_abi::api::Mpi;
use mpi_abi::handles::{Comm, Datatype};

use crate::error::{Error, Result};
use crate::numbers::Numbers;
use crate::subject::Subject;
use crate::world::World;

/// `VEF_BENCH_ABI`.
const ABI: u32 = 1;

/// `vef_bench_operation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Functions {
    prepare: Option<unsafe extern "C" fn(usize, c_int, usize, *mut *mut c_void) -> c_int>,
    run: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    check: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> c_int>,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `vef_bench_algorithm`. Handles are words: as wide as the register that an `int` or a pointer is passed in.
type Algorithm = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, usize, usize, c_int, usize) -> c_int;

/// `vef_bench`, and what was registered.
#[repr(C)]
struct Registrar {
    abi: u32,
    size: u32,
    operation: unsafe extern "C" fn(*mut Registrar, *const c_char, *const Functions) -> c_int,
    algorithm: unsafe extern "C" fn(*mut Registrar, *const c_char, *const c_char, Option<Algorithm>) -> c_int,
    /// Behind what the library knows of.
    libraries: *mut Libraries,
}

/// An operation of the user's.
#[derive(Debug)]
pub struct OwnOperation {
    name: String,
    library: PathBuf,
    functions: Functions,
}

/// An algorithm of the user's for an operation of MPI.
#[derive(Debug)]
pub struct OwnAlgorithm {
    operation: Operation,
    name: String,
    library: PathBuf,
    run: Algorithm,
}

/// What the loaded libraries have registered. They are never unloaded.
#[derive(Debug, Default)]
pub struct Libraries {
    /// The one that is being loaded.
    path: PathBuf,
    operations: Vec<&'static OwnOperation>,
    algorithms: Vec<&'static OwnAlgorithm>,
}

impl Libraries {
    /// Loads libraries and lets them register what they have. MPI must be initialised.
    ///
    /// # Errors
    /// It is no library, one for another MPI, or one that refuses.
    pub fn load(paths: &[PathBuf]) -> Result<Libraries> {
        let mut libraries = Libraries::default();
        for path in paths {
            libraries.add(path).map_err(|reason| Error::Invalid(format!("{}: {reason}", path.display())))?;
        }
        Ok(libraries)
    }

    fn add(&mut self, path: &Path) -> std::result::Result<(), String> {
        // A path without a slash would be searched for elsewhere.
        let file = if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) };
        // SAFETY: the user asks for this library's code to run.
        let library = unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        // Never closed: what it registers stays.
        let library = ManuallyDrop::new(library.map_err(|error| error.to_string())?);
        // SAFETY: what MPI and the header say these names are.
        let (own_mpi, register) = unsafe {
            type Register = unsafe extern "C" fn(*mut Registrar) -> c_int;
            (library.get::<*mut c_void>(b"PMPI_Comm_rank"), library.get::<Register>(b"vef_bench_register"))
        };
        let loaded = mpi_abi::symbols::function(c"PMPI_Comm_rank").map(|function| function.as_ptr());
        if own_mpi.is_ok_and(|own| Some(own.as_raw_ptr()) != loaded) {
            return Err("linked with another MPI than the one that this run uses".into());
        }
        let Ok(register) = register else {
            return Err("does not define vef_bench_register (vef_bench.h)".into());
        };
        self.path = path.to_owned();
        let mut registrar = Registrar {
            abi: ABI,
            size: std::mem::offset_of!(Registrar, libraries) as u32,
            operation: register_operation,
            algorithm: register_algorithm,
            libraries: self,
        };
        // SAFETY: what the header says.
        let code = unsafe { register(&raw mut registrar) };
        if code == 0 { Ok(()) } else { Err(format!("vef_bench_register returned {code}")) }
    }

    /// The operation of that name.
    pub fn operation(&self, name: &str) -> Option<&'static OwnOperation> {
        self.operations.iter().find(|known| known.name == name).copied()
    }

    /// The algorithm of that name for an operation.
    pub fn algorithm(&self, operation: Operation, name: &str) -> Option<&'static OwnAlgorithm> {
        self.algorithms.iter().find(|known| known.operation == operation && known.name == name).copied()
    }
}

/// A name as the library passes it; none if it is null, empty or no text.
unsafe fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the contract of the header: a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    (!name.is_empty() && name.chars().all(fits)).then(|| name.to_owned())
}

unsafe extern "C" fn register_operation(
    registrar: *mut Registrar,
    name: *const c_char,
    functions: *const Functions,
) -> c_int {
    // SAFETY: the library passes the pointer that it was given, as the header requires; no other reference to the libraries exists during the call.
    let (libraries, name, functions) =
        unsafe { (&mut *(*registrar).libraries, text(name), functions.as_ref()) };
    match (name, functions) {
        (Some(name), Some(&functions))
            if functions.prepare.is_some()
                && functions.run.is_some()
                && libraries.operation(&name).is_none() =>
        {
            let library = libraries.path.clone();
            libraries.operations.push(Box::leak(Box::new(OwnOperation { name, library, functions })));
            0
        }
        _ => 1,
    }
}

unsafe extern "C" fn register_algorithm(
    registrar: *mut Registrar,
    operation: *const c_char,
    name: *const c_char,
    run: Option<Algorithm>,
) -> c_int {
    // SAFETY: as above.
    let (libraries, operation, name) = unsafe { (&mut *(*registrar).libraries, text(operation), text(name)) };
    let operation = operation.and_then(|text| Operation::named(&text));
    match (operation, name, run) {
        (Some(operation), Some(name), Some(run)) if libraries.algorithm(operation, &name).is_none() => {
            let library = libraries.path.clone();
            libraries.algorithms.push(Box::leak(Box::new(OwnAlgorithm { operation, name, library, run })));
            0
        }
        _ => 1,
    }
}

/// What a function of a library's returned, as a result.
#[inline]
fn checked(mpi: &Mpi, library: &Path, what: impl FnOnce() -> String, code: c_int) -> Result<()> {
    if code == mpi.abi().constants.success {
        return Ok(());
    }
    let meaning = mpi.error_text(code).unwrap_or_default();
    Err(Error::file(library, format!("{} returned {code} ({meaning})", what())))
}

impl OwnOperation {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its results can be checked.
    pub fn is_verifiable(&self) -> bool {
        self.functions.check.is_some()
    }

    /// Makes it ready for a size.
    ///
    /// # Errors
    /// [`Error::Local`]: what the library's function returns.
    pub fn prepare(&'static self, world: &World, root: u32, bytes: u64) -> Result<PreparedOperation> {
        let mut state = null_mut();
        if let Some(prepare) = self.functions.prepare {
            // SAFETY: what the header says.
            let code = unsafe { prepare(world.comm.word(), root as c_int, bytes as usize, &raw mut state) };
            checked(&world.mpi, &self.library, || format!("prepare of {}", self.name), code)?;
        }
        Ok(PreparedOperation { mpi: world.mpi.clone(), operation: self, state })
    }
}

/// An operation of the user's, ready to run.
pub struct PreparedOperation {
    mpi: Mpi,
    operation: &'static OwnOperation,
    state: *mut c_void,
}

impl PreparedOperation {
    /// What is wrong with the result of the run before, as far as the library can tell.
    pub fn fault(&mut self) -> Option<String> {
        let check = self.operation.functions.check?;
        let mut room = [0u8; 200];
        // SAFETY: what the header says.
        let code = unsafe { check(self.state, room.as_mut_ptr().cast(), room.len()) };
        let text = room.split(|&byte| byte == 0).next().map(String::from_utf8_lossy).unwrap_or_default();
        match code {
            0 => None,
            code if text.is_empty() => Some(format!("its check returned {code}")),
            _ => Some(text.into_owned()),
        }
    }
}

impl Subject for PreparedOperation {
    #[inline]
    fn run(&mut self) -> Result<()> {
        let Some(run) = self.operation.functions.run else { return Ok(()) };
        // SAFETY: what the header says; the state is that of `prepare`.
        let code = unsafe { run(self.state) };
        checked(&self.mpi, &self.operation.library, || format!("run of {}", self.operation.name), code)
    }
}

impl Drop for PreparedOperation {
    fn drop(&mut self) {
        if let Some(release) = self.operation.functions.release {
            // SAFETY: what the header says; nothing runs any more.
            unsafe { release(self.state) };
        }
    }
}

impl OwnAlgorithm {
    /// For which operation it is.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it ready for blocks of `bytes`.
    ///
    /// # Errors
    /// A size beyond a C `int`.
    pub fn prepare(
        &'static self,
        world: &World,
        root: u32,
        bytes: u64,
        numbers: Numbers,
    ) -> Result<LibraryCall> {
        let unit = numbers.width() as u32;
        let bytes = if self.operation == Operation::Barrier { 0 } else { bytes };
        let member = Member { operation: self.operation, ranks: world.size, rank: world.rank, root, unit };
        let room = |buffer| vec![0u64; member.buffer_bytes(buffer, Sizes::Bytes(bytes)).div_ceil(8) as usize];
        let count = c_int::try_from(bytes / u64::from(unit))
            .map_err(|_| Error::setting("size", bytes, "more elements than a C int can count"))?;
        Ok(LibraryCall {
            mpi: world.mpi.clone(),
            algorithm: self,
            buffers: [room(Buffer::Input), room(Buffer::Output)],
            bytes: [Buffer::Input, Buffer::Output]
                .map(|buffer| member.buffer_bytes(buffer, Sizes::Bytes(bytes)) as usize),
            count,
            datatype: numbers.datatype(&world.mpi),
            root: root as c_int,
            comm: world.comm,
        })
    }
}

/// An algorithm of the user's with its buffers.
pub struct LibraryCall {
    mpi: Mpi,
    algorithm: &'static OwnAlgorithm,
    /// Input and output.
    buffers: [Vec<u64>; 2],
    bytes: [usize; 2],
    count: c_int,
    datatype: Datatype,
    root: c_int,
    comm: Comm,
}

impl LibraryCall {
    /// The bytes of the input or the output.
    pub fn buffer(&mut self, buffer: Buffer) -> &mut [u8] {
        let place = usize::from(buffer != Buffer::Input);
        // SAFETY: any bytes are valid numbers, and there are at least as many.
        unsafe { std::slice::from_raw_parts_mut(self.buffers[place].as_mut_ptr().cast(), self.bytes[place]) }
    }
}

impl Subject for LibraryCall {
    #[inline]
    fn run(&mut self) -> Result<()> {
        let (input, output) = (self.buffers[0].as_ptr().cast(), self.buffers[1].as_mut_ptr().cast());
        let op = self.mpi.sum().word();
        let (datatype, comm) = (self.datatype.word(), self.comm.word());
        // SAFETY: what the header says; the buffers are as long as the operation has them.
        let code = unsafe { (self.algorithm.run)(input, output, self.count, datatype, op, self.root, comm) };
        checked(&self.mpi, &self.algorithm.library, || format!("algorithm {}", self.algorithm.name), code)
    }
}
