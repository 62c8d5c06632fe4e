//! Messages, their requests and statuses.

use super::{Element, Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Request};
use crate::status::Status;

/// The peer and the tag of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The rank of the peer in the communicator.
    pub peer: i32,
    /// The tag.
    pub tag: i32,
    /// The communicator.
    pub comm: Comm,
}

impl Envelope {
    /// An envelope with this peer and tag.
    pub fn new(peer: i32, tag: i32, comm: Comm) -> Self {
        Envelope { peer, tag, comm }
    }
}

impl Mpi {
    /// `MPI_Send`.
    pub fn send<T: Element>(&self, data: &[T], to: Envelope) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Send", data.len())?;
        pmpi!(self, MPI_Send(data.as_ptr(), count, datatype, to.peer, to.tag, to.comm.word()))
    }

    /// `MPI_Recv`.
    pub fn recv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<()> {
        let (count, datatype) = self.shape::<T>("MPI_Recv", data.len())?;
        let (Envelope { peer, tag, comm }, ignore) = (from, self.abi().constants.status_ignore);
        pmpi!(self, MPI_Recv(data.as_mut_ptr(), count, datatype, peer, tag, comm.word(), ignore))
    }

    /// `MPI_Probe`: waits for a message.
    pub fn probe(&self, from: Envelope) -> Result<()> {
        let ignore = self.abi().constants.status_ignore;
        pmpi!(self, MPI_Probe(from.peer, from.tag, from.comm.word(), ignore))
    }

    /// `MPI_Isend`.
    ///
    /// # Safety
    /// `data` must not be moved or changed until the request has completed.
    pub unsafe fn isend<T: Element>(&self, data: &[T], to: Envelope) -> Result<Request> {
        let (count, datatype) = self.shape::<T>("MPI_Isend", data.len())?;
        let Envelope { peer, tag, comm } = to;
        self.handle(|new| pmpi!(self, MPI_Isend(data.as_ptr(), count, datatype, peer, tag, comm.word(), new)))
    }

    /// `MPI_Irecv`.
    ///
    /// # Safety
    /// `data` must not be moved or accessed until the request has completed.
    pub unsafe fn irecv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<Request> {
        let (count, datatype) = self.shape::<T>("MPI_Irecv", data.len())?;
        let Envelope { peer, tag, comm } = from;
        self.handle(|new| {
            pmpi!(self, MPI_Irecv(data.as_mut_ptr(), count, datatype, peer, tag, comm.word(), new))
        })
    }

    /// Sends, receives, or does both, and returns when both have completed. Waits by sleeping instead of spinning in
    /// MPI, so that there may be more processes than cores; this adds up to a millisecond.
    pub fn transfer_asleep<T: Element>(
        &self,
        send: Option<(&[T], Envelope)>,
        receive: Option<(&mut [T], Envelope)>,
    ) -> Result<()> {
        // SAFETY: both buffers are borrowed until this function returns, which is after both requests have completed.
        let (receiving, sending) = unsafe {
            let receiving = receive.map(|(data, from)| self.irecv(data, from)).transpose()?;
            let sending = send.map(|(data, to)| self.isend(data, to)).transpose();
            if sending.is_err() && receiving.is_some() {
                // MPI still refers to the other buffer, and its request cannot be waited for.
                std::process::abort();
            }
            (receiving, sending?)
        };
        let mut pending: Vec<usize> = [receiving, sending].into_iter().flatten().map(Request::word).collect();
        let mut looks = 0u32;
        loop {
            let ignore = self.abi().constants.status_ignore;
            pending.retain_mut(|request| {
                match self.number(|done| pmpi!(self, MPI_Test(std::ptr::from_mut(request), done, ignore))) {
                    Ok(done) => done == 0,
                    Err(_) => std::process::abort(),
                }
            });
            if pending.is_empty() {
                return Ok(());
            }
            looks += 1;
            if looks > 20 {
                // 1 µs, 2 µs … 1 ms.
                let doublings = ((looks - 20) / 4).min(10);
                std::thread::sleep(std::time::Duration::from_micros(1 << doublings));
            }
        }
    }

    /// `MPI_Waitall`.
    ///
    /// # Safety
    /// The requests must not have completed before, and no copies of the handles may be used afterwards.
    pub unsafe fn wait_all(&self, requests: &[Request]) -> Result<()> {
        let count = int("MPI_Waitall", "number of requests", requests.len())?;
        let ignore = self.abi().constants.statuses_ignore;
        if self.abi().has_int_handles() {
            let mut words: Vec<u32> = requests.iter().map(|request| request.word() as u32).collect();
            pmpi!(self, MPI_Waitall(count, words.as_mut_ptr(), ignore))
        } else {
            let mut words: Vec<usize> = requests.iter().map(|request| request.word()).collect();
            pmpi!(self, MPI_Waitall(count, words.as_mut_ptr(), ignore))
        }
    }

    /// Whether a request was cancelled; `None`: it has not completed. An inactive persistent request has. Does not complete
    /// the request (`MPI_Request_get_status`).
    ///
    /// # Safety
    /// The request must be valid.
    pub unsafe fn request_is_cancelled(&self, request: Request) -> Result<Option<bool>> {
        // Room for the status of any ABI.
        let mut room = [0u64; 8];
        let status = room.as_mut_ptr();
        let completed =
            self.number(|flag| pmpi!(self, MPI_Request_get_status(request.word(), flag, status)))?;
        // SAFETY: a status of this ABI, written by the call.
        let status = unsafe { Status::at(status.cast(), self.abi()) };
        (completed != 0).then(|| self.status_cancelled(&status)).transpose()
    }

    /// The number of bytes received: from the status if the ABI defines that, else by `MPI_Get_elements`.
    pub fn status_bytes(&self, status: &Status<'_>) -> Result<u64> {
        if let Some(bytes) = status.bytes() {
            return Ok(bytes);
        }
        let byte = self.abi().byte().word();
        let bytes = self.count(|count| pmpi!(self, MPI_Get_elements_x(status.address(), byte, count)))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Whether the operation was cancelled.
    pub fn status_cancelled(&self, status: &Status<'_>) -> Result<bool> {
        match status.cancelled() {
            Some(cancelled) => Ok(cancelled),
            None => Ok(self.number(|flag| pmpi!(self, MPI_Test_cancelled(status.address(), flag)))? != 0),
        }
    }
}
