//! The beginning and the end of a recording.

use crate::arguments::{Args, abi};
use crate::call::{Ended, Hook, Recorded, SUCCESS};
use crate::clock;
use crate::front::hidden_by;
use crate::guard::{catching_panics, warn};
use crate::machine::Frame;
use crate::settings::Settings;
use crate::tracer::{OPENING, Tracer};
use mpi_abi::handles::Session;
use mpi_abi::prototypes::{Call, Export, Name};
use std::path::Path;
use vef_format::capture::encode::Content;
use vef_format::capture::event::{Action, Creation, UNRECORDED};

/// `MPI_Finalize` and `MPI_Session_finalize`: the last one ends the recording.
pub(super) const END: Hook =
    Hook { after: |call| end(call, Ended::Success), after_failure: end, ..Hook::NONE };

fn end(call: &mut Recorded, ended: Ended) {
    let (tracer, times) = (call.tracer, (call.start, call.end));
    tracer.count(call.call(), times.1.wrapping_sub(times.0), ended != Ended::Success);
    // A failed finalization also ends MPI.
    if ended != Ended::Thrown {
        tracer.close(call.lane, times, call.call());
    }
}

/// `MPI_Abort` is recorded before the call, which does not return.
pub(super) const ABORT: Hook = Hook { before: abort, ..Hook::NONE };

fn abort(call: &mut Recorded) {
    const CODE: usize = Call::MPI_Abort.place(Name::Errorcode);
    let code = call.args.int(CODE);
    (call.start, call.end) = (clock::now(), clock::now());
    call.tracer.count(call.call(), 0, false);
    call.put(&Action::Abort { code });
}

/// Calls `next`, which initialises MPI or begins a session; when it succeeds, starts recorder number `place`, which
/// writes to `directory`. `alone`: there is no chain of tools.
pub(crate) fn begin(
    number: usize,
    frame: Frame,
    (place, directory): (usize, &Path),
    alone: bool,
    next: impl FnOnce() -> i32,
) -> i32 {
    let export = Export::get(number);
    let call = export.call();
    let settings = Settings::from_env();
    clock::choose(settings.cycles);
    let zero = clock::pair();
    let start = clock::now();
    let code = next();
    if code != SUCCESS || !settings.enabled {
        return code;
    }
    // A panic in here must not reach the program.
    catching_panics(|| {
        let session = session_of(export, frame);
        let _alone = OPENING.lock();
        if let Some(tracer) = Tracer::at(place) {
            return tracer.open(session);
        }
        let begun = Tracer::begin(&settings, (place, directory), alone, session, zero);
        let tracer = match begun {
            Ok(tracer) => tracer,
            Err(reason) => return warn(&format!("this process is not traced: {reason}")),
        };
        let Some(mut lane) = tracer.lane() else { return };
        let lane = lane.get();
        lane.writer.begin_at(start);
        let world = tracer.describe_world(lane);
        // The program does not run before the recorder is ready: that is no time of its own.
        let end = lane.writer.look();
        lane.writer.put((start, end), Content::Action(&Action::Init), tracer.slot(call));
        tracer.count(call, end.wrapping_sub(start), false);
        if session.is_none()
            && let Some(comm) = tracer.describe_parents(lane, world)
        {
            let creation = Action::Creation(Creation { comm, request: None });
            lane.writer.define(&creation, tracer.slot(call));
        }
        lane.check();
        if settings.ranks.is_some_and(|ranks| !ranks.has(tracer.rank.0)) {
            tracer.stop_quietly(lane, UNRECORDED);
        } else {
            tracer.start();
        }
        if tracer.rank.0 == 0
            && alone
            && let Some((library, function)) = hidden_by()
        {
            warn(&format!(
                "{library} stands in front of the recorder and has its own {function}: what it takes to PMPI is not recorded; preload it behind"
            ));
        }
    });
    code
}

/// The session that a call has begun; `None` for `MPI_Init`.
fn session_of(export: Export, frame: Frame) -> Option<Session> {
    let place = export.call().position(Name::Session)?;
    // SAFETY: the call has succeeded, so it has written this session.
    Some(unsafe { Session::from_word(Args::new(frame, export, abi()?).handle_at(place, 0)) })
}
