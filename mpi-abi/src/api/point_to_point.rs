//! Messages and requests.

use super::{Element, Mpi, int, pmpi};
use crate::error::Result;
use crate::handles::{Comm, Request};

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

/// The status of a completed receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
}

impl Mpi {
    /// `MPI_Send`.
    pub fn send<T: Element>(&self, data: &[T], to: Envelope) -> Result<()> {
        let count = int("MPI_Send", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(to);
        pmpi!(self, MPI_Send(data.as_ptr(), count, datatype, peer, tag, to.comm.word()))
    }

    /// `MPI_Recv`.
    pub fn recv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<Received> {
        let count = int("MPI_Recv", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(from);
        self.received(|status| {
            pmpi!(self, MPI_Recv(data.as_mut_ptr(), count, datatype, peer, tag, from.comm.word(), status))
        })
    }

    /// `MPI_Probe`.
    pub fn probe(&self, from: Envelope) -> Result<Received> {
        let (_, peer, tag) = self.words::<u8>(from);
        self.received(|status| pmpi!(self, MPI_Probe(peer, tag, from.comm.word(), status)))
    }

    /// `MPI_Isend`.
    ///
    /// # Safety
    /// `data` must not be moved or changed until the request has completed.
    pub unsafe fn isend<T: Element>(&self, data: &[T], to: Envelope) -> Result<Request> {
        let count = int("MPI_Isend", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(to);
        self.handle(|request| {
            pmpi!(self, MPI_Isend(data.as_ptr(), count, datatype, peer, tag, to.comm.word(), request))
        })
    }

    /// `MPI_Irecv`.
    ///
    /// # Safety
    /// `data` must not be moved or accessed until the request has completed.
    pub unsafe fn irecv<T: Element>(&self, data: &mut [T], from: Envelope) -> Result<Request> {
        let count = int("MPI_Irecv", "count", data.len())?;
        let (datatype, peer, tag) = self.words::<T>(from);
        self.handle(|request| {
            pmpi!(self, MPI_Irecv(data.as_mut_ptr(), count, datatype, peer, tag, from.comm.word(), request))
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
        let mut words: [Option<usize>; 2] = [receiving, sending].map(|request| request.map(|r| r.word()));
        let mut looks = 0u32;
        while words.iter().any(Option::is_some) {
            for word in &mut words {
                let Some(request) = word else { continue };
                let ignore = self.abi().constants.status_ignore;
                match self.number(|done| pmpi!(self, MPI_Test(std::ptr::from_mut(request), done, ignore))) {
                    Ok(0) => {}
                    Ok(_) => *word = None,
                    Err(_) => std::process::abort(),
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

    /// The datatype, rank and tag of a call as words.
    fn words<T: Element>(&self, envelope: Envelope) -> (usize, i32, i32) {
        (T::datatype(self.abi()).word(), envelope.peer, envelope.tag)
    }

    fn received(&self, call: impl FnOnce(*mut u8) -> Result<()>) -> Result<Received> {
        self.with_status(call, |status| {
            Ok(Received { source: status.source(), tag: status.tag(), bytes: self.status_bytes(status)? })
        })
    }
}
