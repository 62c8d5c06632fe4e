//! Messages, requests and statuses.

use std::ffi::c_int;
use std::mem::size_of_val;

use super::{Element, Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Datatype, Request};
use crate::status::Status;

/// To or from whom a message goes, and its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Rank of the peer in the communicator; for receiving, `None` is any.
    pub peer: Option<i32>,
    /// Tag; for receiving, `None` is any.
    pub tag: Option<i32>,
    /// The communicator.
    pub comm: Comm,
}

impl Envelope {
    /// To or from this rank, with this tag.
    pub fn new(peer: i32, tag: i32, comm: Comm) -> Self {
        Envelope { peer: Some(peer), tag: Some(tag), comm }
    }
}

/// What a completed receive or a probe says of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
}

/// Room for the status of any ABI.
#[repr(align(8))]
struct StatusRoom([u8; 64]);

impl Mpi {
    /// `MPI_Send`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`], or [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn send<T: Element>(&self, data: &[T], to: Envelope) -> Result<()> {
        let count = int("MPI_Send", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(to);
        pmpi!(self, MPI_Send(data.as_ptr(), count, datatype, peer, tag, to.comm.word()))
    }

    /// `MPI_Recv`.
    ///
    /// # Errors
    /// As [`Mpi::send`].
    pub fn recv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<Received> {
        let count = int("MPI_Recv", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(from);
        self.with_status(|status| {
            pmpi!(self, MPI_Recv(data.as_mut_ptr(), count, datatype, peer, tag, from.comm.word(), status))
        })
    }

    /// `MPI_Probe`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn probe(&self, from: Envelope) -> Result<Received> {
        let (_, peer, tag) = self.words::<u8>(from);
        self.with_status(|status| pmpi!(self, MPI_Probe(peer, tag, from.comm.word(), status)))
    }

    /// `MPI_Isend`.
    ///
    /// # Safety
    /// `data` must stay where it is, unchanged, until the request has completed.
    ///
    /// # Errors
    /// As [`Mpi::send`].
    pub unsafe fn isend<T: Element>(&self, data: &[T], to: Envelope) -> Result<Request> {
        let count = int("MPI_Isend", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(to);
        self.new_request(|request| {
            pmpi!(self, MPI_Isend(data.as_ptr(), count, datatype, peer, tag, to.comm.word(), request))
        })
    }

    /// `MPI_Irecv`.
    ///
    /// # Safety
    /// `data` must stay where it is and not be touched until the request has completed.
    ///
    /// # Errors
    /// As [`Mpi::send`].
    pub unsafe fn irecv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<Request> {
        let count = int("MPI_Irecv", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(from);
        self.new_request(|request| {
            pmpi!(self, MPI_Irecv(data.as_mut_ptr(), count, datatype, peer, tag, from.comm.word(), request))
        })
    }

    /// Sends, receives, or does both at once, and returns when that is over. Who waits sleeps instead of spinning inside
    /// MPI, so that processes may outnumber cores; a transfer so takes up to a millisecond longer.
    ///
    /// # Errors
    /// As [`Mpi::send`].
    pub fn transfer_asleep<T: Element>(
        &self,
        send: Option<(&[T], Envelope)>,
        receive: Option<(&mut [T], Envelope)>,
    ) -> Result<()> {
        // SAFETY: both buffers are borrowed until this returns, and it returns only when both requests have completed.
        let (receiving, sending) = unsafe {
            let receiving = receive.map(|(data, from)| self.irecv(data, from)).transpose()?;
            let sending = send.map(|(data, to)| self.isend(data, to)).transpose();
            if sending.is_err() && receiving.is_some() {
                // MPI still holds the other buffer, and nobody could wait for it.
                std::process::abort();
            }
            (receiving, sending?)
        };
        let mut words: [Option<usize>; 2] = [receiving, sending].map(|request| request.map(|r| r.word()));
        let mut looks = 0u32;
        while words.iter().any(Option::is_some) {
            for word in &mut words {
                let Some(request) = word else { continue };
                let (mut done, ignore): (c_int, _) = (0, self.abi().constants.status_ignore);
                let tested = pmpi!(self, MPI_Test(std::ptr::from_mut(request), &raw mut done, ignore));
                if tested.is_err() {
                    std::process::abort();
                }
                if done != 0 {
                    *word = None;
                }
            }
            looks += 1;
            if looks > 20 {
                // 1 µs, 2 µs … 1 ms.
                let doublings = ((looks - 20) / 4).min(10);
                std::thread::sleep(std::time::Duration::from_micros(1 << doublings));
            }
        }
        Ok(())
    }

    /// `MPI_Wait`.
    ///
    /// # Safety
    /// The request must not have completed before, and no copy of the handle may be used afterwards.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub unsafe fn wait(&self, request: Request) -> Result<Received> {
        let mut word = request.word();
        self.with_status(|status| pmpi!(self, MPI_Wait(&raw mut word, status)))
    }

    /// `MPI_Waitall`.
    ///
    /// # Safety
    /// As [`Mpi::wait`], for each request.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub unsafe fn wait_all(&self, requests: &[Request]) -> Result<()> {
        let count = int("MPI_Waitall", "number of requests", requests.len())?;
        let ignore = self.abi().constants.statuses_ignore;
        match self.abi().handle_size {
            4 => {
                let mut words: Vec<u32> = requests.iter().map(|request| request.word() as u32).collect();
                pmpi!(self, MPI_Waitall(count, words.as_mut_ptr(), ignore))
            }
            _ => {
                let mut words: Vec<usize> = requests.iter().map(|request| request.word()).collect();
                pmpi!(self, MPI_Waitall(count, words.as_mut_ptr(), ignore))
            }
        }
    }

    /// The bytes that a status says were received: from the status itself where the ABI tells, else by
    /// `MPI_Get_elements`.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn status_bytes(&self, status: &Status<'_>) -> Result<u64> {
        match status.bytes() {
            Some(bytes) => Ok(bytes),
            None => Ok(self.status_elements(status, self.abi().byte())?.unwrap_or(0)),
        }
    }

    /// Whether a status says that the call was cancelled.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn status_cancelled(&self, status: &Status<'_>) -> Result<bool> {
        if let Some(cancelled) = status.cancelled() {
            return Ok(cancelled);
        }
        let mut flag: c_int = 0;
        pmpi!(self, MPI_Test_cancelled(status.address(), &raw mut flag))?;
        Ok(flag != 0)
    }

    /// `MPI_Get_count`: whole elements of a datatype in a message, `None` where they do not come out even.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn status_count(&self, status: &Status<'_>, datatype: Datatype) -> Result<Option<u64>> {
        let mut count: c_int = 0;
        pmpi!(self, MPI_Get_count(status.address(), datatype.word(), &raw mut count))?;
        Ok(u64::try_from(count).ok())
    }

    /// `MPI_Get_elements_x`: basic elements in a message, `None` where MPI can not say.
    ///
    /// # Errors
    /// As [`Mpi::comm_rank`].
    pub fn status_elements(&self, status: &Status<'_>, datatype: Datatype) -> Result<Option<u64>> {
        let mut count: i64 = 0;
        pmpi!(self, MPI_Get_elements_x(status.address(), datatype.word(), &raw mut count))?;
        Ok(u64::try_from(count).ok())
    }

    /// The datatype, rank and tag of a call as words.
    fn words<T: Element>(&self, envelope: Envelope) -> (usize, i32, i32) {
        let constants = &self.abi().constants;
        let peer = envelope.peer.unwrap_or(constants.any_source);
        (T::datatype(self.abi()).word(), peer, envelope.tag.unwrap_or(constants.any_tag))
    }

    fn new_request(&self, make: impl FnOnce(*mut usize) -> Result<()>) -> Result<Request> {
        let mut word = 0usize;
        make(&raw mut word)?;
        // SAFETY: the call succeeded and wrote a request.
        Ok(unsafe { Request::from_word(self.abi().read_handle((&raw const word).cast())) })
    }

    fn with_status(&self, call: impl FnOnce(*mut u8) -> Result<()>) -> Result<Received> {
        let mut room = StatusRoom([0; 64]);
        debug_assert!(self.abi().status.size <= size_of_val(&room));
        call(room.0.as_mut_ptr())?;
        // SAFETY: a status of this ABI, which the call filled in, and which outlives the view.
        let status = unsafe { Status::at(room.0.as_ptr(), self.abi()) };
        Ok(Received { source: status.source(), tag: status.tag(), bytes: self.status_bytes(&status)? })
    }
}
