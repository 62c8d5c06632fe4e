//! What the calls of MPI wait for: how their time is accounted (`docs/time.md`).

use crate::prototypes::{Call, CallDetail, Category, Timing};
use vef_format::account::TimePart;
use vef_format::capture::event::SendMode;

impl Call {
    /// The part of a task's time that calls of this function count for. That of a wait depends on what it completes; here it is
    /// [`TimePart::Message`].
    pub fn time_part(self) -> TimePart {
        use Category::*;
        let name = self.name();
        let polls = name.starts_with("MPI_Test") || matches!(name, "MPI_Iprobe" | "MPI_Improbe");
        match self.category() {
            Wait | Probe if polls => TimePart::Polling,
            Wait | Probe => TimePart::Message,
            _ if self.timing() != Timing::Blocking => TimePart::Own,
            Recv | SendRecv => TimePart::Message,
            Send if self.detail() == CallDetail::Send(SendMode::Buffered) => TimePart::Own,
            Send => TimePart::Send,
            Request if name.starts_with("MPI_Request_get_status") => TimePart::Polling,
            Partitioned if name == "MPI_Parrived" => TimePart::Polling,
            Collective | NeighborCollective => TimePart::Collective,
            CommCreate if name.starts_with("MPI_Comm_idup") => TimePart::Own,
            CommCreate | CommFree | Process => TimePart::Communicator,
            RmaSync if name == "MPI_Win_test" => TimePart::Polling,
            Rma | RmaSync | WinCreate | WinFree => TimePart::Window,
            FileOpen | FileSync | FileClose | Io => TimePart::File,
            Lifecycle => TimePart::StartUp,
            Partitioned | Start | RequestFree | Request | Status | CommQuery | Topology | Group
            | WinQuery | FileQuery | TypeCreate | TypeCommit | TypeFree | TypeQuery | Session | Attribute
            | ErrorHandling | Info | Op | Pcontrol | Local | Conversion => TimePart::Own,
        }
    }
}

/// [`Call::time_part`] of the function `name`; functions that this crate does not know are MPI's own work.
pub fn time_part(name: &str) -> TimePart {
    Call::from_name(name).map_or(TimePart::Own, Call::time_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_what_they_wait_for() {
        for (name, part) in [
            ("MPI_Init_thread", TimePart::StartUp),
            ("MPI_Recv_c", TimePart::Message),
            ("MPI_Mprobe", TimePart::Message),
            ("MPI_Waitany", TimePart::Message),
            ("MPI_Sendrecv_replace", TimePart::Message),
            ("MPI_Isendrecv", TimePart::Own),
            ("MPI_Ssend", TimePart::Send),
            ("MPI_Bsend_c", TimePart::Own),
            ("MPI_Issend", TimePart::Own),
            ("MPI_Recv_init", TimePart::Own),
            ("MPI_Startall", TimePart::Own),
            ("MPI_Allreduce", TimePart::Collective),
            ("MPI_Iallreduce", TimePart::Own),
            ("MPI_Neighbor_alltoallw", TimePart::Collective),
            ("MPI_Testsome", TimePart::Polling),
            ("MPI_Iprobe", TimePart::Polling),
            ("MPI_Request_get_status", TimePart::Polling),
            ("MPI_Test_cancelled", TimePart::Own),
            ("MPI_Cart_create", TimePart::Communicator),
            ("MPI_Comm_idup", TimePart::Own),
            ("MPI_Comm_connect", TimePart::Communicator),
            ("MPI_Win_fence", TimePart::Window),
            ("MPI_Put", TimePart::Window),
            ("MPI_File_write_all", TimePart::File),
            ("MPI_File_iread", TimePart::Own),
            ("MPI_Not_yet_invented", TimePart::Own),
        ] {
            assert_eq!(time_part(name), part, "{name}");
        }
    }
}
