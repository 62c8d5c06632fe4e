//! The messages of one collective: non-blocking calls on the tool's own communicator, which go on through the chain.

use mpi_abi::api::Mpi;
use mpi_abi::handles::{Comm, Datatype};
use mpi_abi::prototypes::Call;
use mpi_abi::status::Status;
use mpi_abi::tool::Intercepted;

/// An MPI error code.
pub(crate) type Code = i32;

/// The code of a failure of `mpi-abi`'s.
pub(crate) fn code_of(error: mpi_abi::Error) -> Code {
    match error {
        mpi_abi::Error::Call { code, .. } => code,
        _ => mpi_abi::ERR_NO_SUCH_FUNCTION,
    }
}

/// All messages have this one: those of a pair of ranks match in the order of the schedules.
const TAG: usize = 0;
/// Longer messages are sent in parts: a count is a C `int`.
const MOST_BYTES: u64 = 1 << 30;

/// Messages under way.
pub(crate) struct Messages<'a> {
    call: &'a Intercepted<'a>,
    mpi: &'a Mpi,
    comm: Comm,
    /// Handles as MPI has them in an array: `handle_size` bytes each.
    requests: Vec<u8>,
    pending: usize,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(call: &'a Intercepted<'a>, mpi: &'a Mpi, comm: Comm) -> Self {
        Self { call, mpi, comm, requests: Vec::new(), pending: 0 }
    }

    /// Posts sends (`MPI_Isend`) to a rank or receives (`MPI_Irecv`) from it.
    ///
    /// # Safety
    /// The elements must stay until the next wait, and those received must not be touched.
    pub(crate) unsafe fn post(
        &mut self,
        function: Call,
        (at, count, datatype): (usize, u64, Datatype),
        (size, extent): (u64, i64),
        peer: u32,
    ) -> Result<(), Code> {
        let most = (MOST_BYTES / size.max(1)).max(1);
        let mut done = 0;
        loop {
            let part = (count - done).min(most);
            let first = at.wrapping_add_signed((extent as isize).wrapping_mul(done as isize));
            let width = self.mpi.abi().handle_size;
            // A word of room, whatever the width: nothing is behind the last one.
            self.requests.resize(self.pending * width + 8, 0);
            let mut request = 0usize;
            let words = [
                first,
                part as usize,
                datatype.word(),
                peer as usize,
                TAG,
                self.comm.word(),
                &raw mut request as usize,
            ];
            // SAFETY: the function's arguments; the elements are the caller's promise.
            let code = unsafe { self.call.call_next(function, &words) };
            self.check(code)?;
            self.requests[self.pending * width..][..width].copy_from_slice(&request.to_ne_bytes()[..width]);
            self.pending += 1;
            done += part;
            if done >= count {
                return Ok(());
            }
        }
    }

    /// Waits for all that was posted.
    pub(crate) fn wait(&mut self) -> Result<(), Code> {
        if self.pending == 0 {
            return Ok(());
        }
        let abi = self.mpi.abi();
        let mut statuses = vec![0u64; (self.pending * abi.status.size).div_ceil(8)];
        // In words, for their alignment.
        let mut requests = vec![0u64; (self.pending * abi.handle_size).div_ceil(8)];
        // SAFETY: as many bytes of plain numbers.
        unsafe {
            let to = requests.as_mut_ptr().cast::<u8>();
            to.copy_from_nonoverlapping(self.requests.as_ptr(), self.pending * abi.handle_size);
        }
        let words = [self.pending, requests.as_mut_ptr() as usize, statuses.as_mut_ptr() as usize];
        // SAFETY: the function's arguments, requests that were posted above.
        let code = unsafe { self.call.call_next(Call::MPI_Waitall, &words) };
        if code == abi.constants.err_in_status {
            let error = |index: usize| {
                // SAFETY: MPI has written that many statuses there.
                unsafe { Status::at(statuses.as_ptr().cast::<u8>().add(index * abi.status.size), abi) }
                    .error()
            };
            let told = |code: &Code| *code != abi.constants.success && *code != abi.constants.err_pending;
            return Err((0..self.pending).map(error).find(told).unwrap_or(code));
        }
        self.check(code)?;
        self.pending = 0;
        Ok(())
    }

    fn check(&self, code: Code) -> Result<(), Code> {
        if code == self.mpi.abi().constants.success { Ok(()) } else { Err(code) }
    }
}
