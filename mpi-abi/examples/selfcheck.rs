//! Calls all functions of `mpi_abi::api` under a real MPI that it was not linked with, and exits with 0 if all
//! results are those that the standard requires. `selfcheck [--local LIBRARY]`; `--local` opens the library first,
//! outside the loader's global scope, as interpreters do. `tests/tests/abi.rs` runs it.

#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::ffi::CString;

use mpi_abi::api::{Envelope, Mpi};
use mpi_abi::handles::{Comm, Datatype};
use mpi_abi::status::Status;
use mpi_abi::symbols::Function;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    assert!(Mpi::loaded().is_err(), "this program is not linked with an MPI");
    let mpi = match arguments.get(1).map(String::as_str) {
        Some("--local") => {
            open_local(&arguments[2]);
            Mpi::loaded()?
        }
        _ => Mpi::open(None)?,
    };
    let level = mpi.init_thread(mpi.abi().constants.thread_multiple)?;
    assert_eq!(mpi.query_thread()?, level);
    let world = mpi.abi().comm_world();

    communicators(&mpi, world)?;
    datatypes(&mpi)?;
    statuses(&mpi)?;
    messages(&mpi, world)?;
    collectives(&mpi, world)?;
    errors(&mpi)?;

    let before = mpi.wtime()?;
    mpi.barrier(world)?;
    assert!(mpi.wtime()? >= before);
    let (rank, size) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    mpi.finalize()?;
    println!("rank {rank} of {size}: all as it should be ({:?})", mpi.abi().flavour);
    Ok(())
}

fn open_local(library: &str) {
    let name = CString::new(library).expect("no NUL in a file name");
    // SAFETY: loads an MPI library, which is made for it.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{library} can not be opened");
    // SAFETY: looks a name up.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Init".as_ptr()) };
    assert!(global.is_null(), "{library} is in the global scope, so this would test nothing");
}

fn communicators(mpi: &Mpi, world: Comm) -> Outcome {
    let (rank, size) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    assert_eq!((mpi.world_rank()?, mpi.world_size()?, mpi.parent()?), (rank, size, None));
    assert_eq!(mpi.comm_neighbours(world)?, [Vec::new(), Vec::new()]);
    let everybody: Vec<_> = (0..size).map(Some).collect();
    assert_eq!(mpi.comm_members(world)?, everybody);
    assert!(!mpi.comm_is_inter(world)?);
    assert_eq!(mpi.comm_members(mpi.abi().comm_self())?, [Some(rank)]);

    // Reversed ranks; the last process gets no communicator.
    let color = (rank != size - 1 || size == 1).then_some(7);
    let part = mpi.comm_split(world, color, -rank)?;
    assert_eq!(part.is_some(), color.is_some());
    if let Some(part) = part {
        let last = if size == 1 { 0 } else { size - 2 };
        let expected: Vec<_> = (0..=last).rev().map(Some).collect();
        assert_eq!(mpi.comm_members(part)?, expected);
    }
    let copy = mpi.comm_dup(world)?;
    assert_ne!(copy, world);
    assert_eq!(mpi.comm_size(copy)?, size);
    Ok(())
}

fn datatypes(mpi: &Mpi) -> Outcome {
    static TYPE_VECTOR: Function = Function::named(c"PMPI_Type_vector");
    let constants = &mpi.abi().constants;
    let double = predefined(mpi.abi().basic.double);
    let layout = |datatype| mpi.type_layout(datatype).map(|layout| layout.expect("a small type"));
    assert_eq!(
        (layout(double)?.size, layout(double)?.is_contiguous(), layout(double)?.is_plain),
        (8, true, true)
    );

    // Three blocks of two doubles, 4 apart, or 2 apart and therefore contiguous.
    for (stride, contiguous) in [(4usize, false), (2, true)] {
        let mut word = 0usize;
        // SAFETY: int MPI_Type_vector(int, int, int, MPI_Datatype, MPI_Datatype *).
        let code = unsafe { TYPE_VECTOR.call([3, 2, stride, double.word(), &raw mut word as usize]) };
        assert_eq!(code, Some(constants.success));
        // SAFETY: the call above made it.
        let vector = unsafe { Datatype::from_word(mpi.abi().read_handle((&raw const word).cast())) };
        let layout = layout(vector)?;
        assert_eq!((layout.size, layout.is_contiguous(), layout.is_plain), (48, contiguous, false));
    }
    Ok(())
}

fn predefined(word: Option<usize>) -> Datatype {
    // SAFETY: a predefined datatype of this MPI.
    unsafe { Datatype::from_word(word.expect("every MPI has it")) }
}

/// Values that MPI writes to the hidden fields of a status are read back.
fn statuses(mpi: &Mpi) -> Outcome {
    static SET_ELEMENTS: Function = Function::named(c"PMPI_Status_set_elements_x");
    static SET_CANCELLED: Function = Function::named(c"PMPI_Status_set_cancelled");
    let abi = mpi.abi();
    let mut room = [0u64; 8];
    let address = room.as_mut_ptr() as usize;
    // SAFETY: the room is larger than any status.
    let status = unsafe { Status::at(address as *const u8, abi) };
    for bytes in [0u64, 1, 0x7fff_ffff, 0x8000_0000, 0x12_3456_789a] {
        for cancelled in [false, true] {
            // SAFETY: int MPI_Status_set_elements_x(MPI_Status *, MPI_Datatype, MPI_Count), and the same with an int.
            let codes = unsafe {
                [
                    SET_ELEMENTS.call([address, abi.byte().word(), bytes as usize]),
                    SET_CANCELLED.call([address, usize::from(cancelled)]),
                ]
            };
            assert_eq!(codes, [Some(0), Some(0)]);
            assert_eq!(mpi.status_bytes(&status)?, bytes);
            assert_eq!(mpi.status_cancelled(&status)?, cancelled);
            assert_eq!(status.bytes().unwrap_or(bytes), bytes);
        }
    }
    Ok(())
}

fn messages(mpi: &Mpi, world: Comm) -> Outcome {
    let (rank, size) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let (to, from) = (Envelope::new(right, 5, world), Envelope::new(left, 5, world));

    let (mine, mut theirs) = ([f64::from(rank); 3], [0f64; 3]);
    // SAFETY: the buffers stay until the requests have completed.
    unsafe {
        let requests = [mpi.irecv(&mut theirs, from)?, mpi.isend(&mine, to)?];
        mpi.wait_all(&requests)?;
    }
    assert_eq!(theirs, [f64::from(left); 3]);

    let mut long = [0u8; 100];
    // SAFETY: the buffer stays until the request has completed.
    let send = unsafe { mpi.isend(&[1u8, 2, 3], to)? };
    mpi.probe(from)?;
    mpi.recv(&mut long, from)?;
    // SAFETY: not completed before.
    unsafe { mpi.wait_all(&[send])? };
    assert_eq!(long[..4], [1, 2, 3, 0]);

    theirs = [-1.0; 3];
    mpi.transfer_asleep(Some((&mine[..], to)), Some((&mut theirs[..], from)))?;
    assert_eq!(theirs, [f64::from(left); 3]);

    let null = mpi.abi().constants.proc_null;
    mpi.send(&[1u8], Envelope::new(null, 0, world))?;
    mpi.recv(&mut [0u8], Envelope::new(null, 0, world))?;
    Ok(())
}

fn collectives(mpi: &Mpi, world: Comm) -> Outcome {
    let (rank, size) = (mpi.comm_rank(world)?, mpi.comm_size(world)?);
    let root = size - 1;
    let is_root = rank == root;

    let mut word = [if is_root { 42u8 } else { 0 }];
    mpi.bcast(&mut word, root, world)?;
    assert_eq!(word, [42]);
    assert_eq!(mpi.largest(f64::from(rank), world)?, f64::from(size) - 1.0);

    let gathered = mpi.gather(&[f64::from(rank), -1.0], root, world)?;
    let expected = (0..if is_root { size } else { 0 }).flat_map(|rank| [f64::from(rank), -1.0]);
    assert_eq!(gathered, expected.collect::<Vec<_>>());
    Ok(())
}

fn errors(mpi: &Mpi) -> Outcome {
    let own = mpi.comm_dup(mpi.abi().comm_self())?;
    mpi.return_errors(own)?;
    match mpi.send(&[0u8], Envelope::new(99, 0, own)) {
        Err(mpi_abi::Error::Call { function: "MPI_Send", code, class, message }) => {
            assert_eq!(mpi.error_class(code)?, class);
            assert!(!message.is_empty() && message == mpi.error_text(code)?);
        }
        other => panic!("there is no rank 99: {other:?}"),
    }
    Ok(())
}
