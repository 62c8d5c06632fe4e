//! The preload library that records the MPI calls of unmodified programs: `libvef_interpose.so`.
//!
//! One file serves every MPI: it links none, exports the names by which programs call MPI, and finds the real
//! functions at run time. As a `cdylib` it has no functions for other crates; its use is
//!
//! ```text
//! $ VEF_DIR=capture LD_PRELOAD=libvef_interpose.so mpirun -n 4 ./app     what `vef run -o capture -n 4 ./app` does
//! $ vef mix capture -o app.vefx
//! ```
//!
//! # The path of a call
//!
//! ```text
//! entry (exported names) ─▶ record (frame of a call) ─▶ hooks (by category) ─▶ writer ─▶ output (the file)
//!    │                         │    ╰─▶ shapes, pending (fast paths) ─────────╯
//!    ╰▶ chain (tools) ─────────╯         known, comms (state of handles)
//! ```
//!
//! `MPI_Isend` and its `MPI_Wait`, step by step:
//!
//! 1. The program calls the exported name `MPI_Isend` (from Fortran `mpi_isend_` and the like): a stub of `machine.rs`, which jumps to the
//!    destination of that name. The first time, `entry.rs` chooses it: the real function if the call is not recorded, the recorder, or a
//!    chain of tools (`chain/`).
//! 2. `record.rs` reads the clock (`clock.rs`), calls the real function with the words that it was given, and reads the clock again. Calls from
//!    inside MPI or a tool (`objects.rs`) are not recorded.
//! 3. The hook of the call's category, here `hooks/point_to_point.rs`, reads the arguments (`places.rs` knows where they are, `arguments.rs` and
//!    `fortran.rs` in which form) and makes the event. Handles in it become numbers (`known.rs`): the communicator's (`comms.rs`), and the new
//!    request's, under whose handle `pending.rs` keeps what its completion needs (`requests.rs`). A call with the arguments of an earlier one
//!    is recorded by reference to that one, without its hook (`shapes.rs`).
//! 4. `writer.rs` encodes the event into the window of its thread, a mapped part of the rank's file (`output.rs`): what is written there
//!    survives the end of the process, however it ends. Polls that find nothing become one record for many (`polls.rs`),
//!    and times in which the thread had no core are records, too (`preempted.rs`).
//! 5. The hook of `MPI_Wait`, `hooks/completion.rs`, finds the request in `pending.rs` and writes its number and the time.
//!
//! Around them: `tracer.rs` is the state of a recorder, from `MPI_Init` (`hooks/lifecycle.rs`) to `MPI_Finalize`; `settings.rs` reads what
//! `vef run` sets; `identity.rs` says which run a file is of; `phases.rs` are the phases that programs mark; `absent.rs` hides exported names
//! that this MPI lacks; `front.rs` says who takes calls away in front; `guard.rs` keeps panics of the recorder from the program, `mapped.rs` the signal of a mapped file that was truncated.
//!
//! This library never prints, except one line on stderr when data is, or may be, lost. It never ends the program and never
//! communicates. It takes no lock in single-threaded programs, does not allocate in ordinary calls, and does nothing
//! in processes without MPI.

mod absent;
mod arguments;
mod call;
mod chain;
mod clock;
mod comms;
mod entry;
mod fortran;
mod front;
mod guard;
mod hooks;
mod identity;
mod known;
mod machine;
mod mapped;
mod objects;
mod output;
mod pending;
mod phases;
mod places;
mod polls;
mod preempted;
mod record;
mod requests;
mod settings;
mod shapes;
mod table;
mod tracer;
mod writer;

const VERSION_TEXT: &str = concat!("vef_interpose_version=", env!("CARGO_PKG_VERSION"), "\0");

/// The version of this library, for `vef run`, which reads it from the file (`cli/src/library.rs`) and refuses another than its own.
#[unsafe(export_name = "vef_interpose_version")]
static VERSION: [u8; VERSION_TEXT.len()] = *VERSION_TEXT.as_bytes().first_chunk().expect("its own length");
