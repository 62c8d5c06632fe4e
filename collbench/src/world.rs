//! The ranks that measure together: a communicator of their own, and the few calls by which they agree.
//!
//! All of these are untimed, and go to the `PMPI_` names, so no tool sees them.

use mpi_abi::api::{Envelope, Mpi};
use mpi_abi::handles::Comm;

use crate::error::Result;

/// A communicator, and this process in it.
#[derive(Clone, Debug)]
pub struct World {
    /// The MPI.
    pub mpi: Mpi,
    /// The communicator; a duplicate that nobody else uses.
    pub comm: Comm,
    /// This process.
    pub rank: u32,
    /// All processes.
    pub size: u32,
}

const TAG: i32 = 7;

impl World {
    /// The processes of `comm`, with a communicator of their own. Collective. Errors of MPI are returned from now on.
    ///
    /// # Errors
    /// MPI's.
    pub fn new(mpi: &Mpi, comm: Comm) -> Result<World> {
        let comm = mpi.comm_dup(comm)?;
        mpi.return_errors(comm)?;
        let (rank, size) = (mpi.comm_rank(comm)? as u32, mpi.comm_size(comm)? as u32);
        Ok(World { mpi: mpi.clone(), comm, rank, size })
    }

    /// Whether this is rank 0, which decides and keeps the results.
    pub fn is_root(&self) -> bool {
        self.rank == 0
    }

    /// `MPI_Barrier`.
    ///
    /// # Errors
    /// MPI's.
    pub fn barrier(&self) -> Result<()> {
        Ok(self.mpi.barrier(self.comm)?)
    }

    /// All ranks' values at rank 0, in rank order, as many from each; nothing elsewhere.
    ///
    /// # Errors
    /// MPI's.
    pub fn gather(&self, values: &[f64]) -> Result<Vec<f64>> {
        Ok(self.mpi.gather(values, 0, self.comm)?)
    }

    /// All ranks' rows at rank 0, by rank, as many from each; nothing elsewhere.
    ///
    /// # Errors
    /// MPI's.
    pub fn gather_rows<const N: usize>(&self, rows: &[[f64; N]]) -> Result<Vec<Vec<[f64; N]>>> {
        let all = self.gather(rows.as_flattened())?;
        Ok(all.chunks(N * rows.len().max(1)).map(|rank| rank.as_chunks().0.to_vec()).collect())
    }

    /// Rank 0's values to all.
    ///
    /// # Errors
    /// MPI's.
    pub fn share<const N: usize>(&self, mut values: [f64; N]) -> Result<[f64; N]> {
        self.mpi.bcast(&mut values, 0, self.comm)?;
        Ok(values)
    }

    /// Whether rank 0 says so, at all ranks.
    ///
    /// # Errors
    /// MPI's.
    pub fn agree(&self, decision: bool) -> Result<bool> {
        Ok(self.share([f64::from(u8::from(decision))])?[0] != 0.0)
    }

    /// The largest of all ranks' values, at all.
    ///
    /// # Errors
    /// MPI's.
    pub fn largest(&self, value: f64) -> Result<f64> {
        Ok(self.mpi.largest(value, self.comm)?)
    }

    /// A short text of each rank at rank 0.
    ///
    /// # Errors
    /// MPI's.
    pub fn gather_text(&self, text: &str) -> Result<Vec<String>> {
        const ROOM: usize = 256;
        let mut own = [0u8; ROOM];
        let bytes = text.as_bytes();
        let length = bytes.len().min(ROOM);
        own[..length].copy_from_slice(&bytes[..length]);
        let text = |own: &[u8]| String::from_utf8_lossy(own).trim_end_matches('\0').to_owned();
        Ok(self.mpi.gather(&own, 0, self.comm)?.chunks(ROOM).map(text).collect())
    }

    /// Sends one number.
    ///
    /// # Errors
    /// MPI's.
    #[inline]
    pub fn send_number(&self, to: u32, value: f64) -> Result<()> {
        Ok(self.mpi.send(&[value], Envelope::new(to as i32, TAG, self.comm))?)
    }

    /// Receives one number.
    ///
    /// # Errors
    /// MPI's.
    #[inline]
    pub fn receive_number(&self, from: u32) -> Result<f64> {
        let mut value = [0.0];
        self.mpi.recv(&mut value, Envelope::new(from as i32, TAG, self.comm))?;
        Ok(value[0])
    }
}
