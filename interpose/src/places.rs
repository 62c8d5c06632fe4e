//! The positions of the arguments that hooks read, by function, found at compile time from the names of the parameters.

use mpi_abi::prototypes::{Call, Kind, Name};

/// The position of an argument, if the function has it.
#[derive(Clone, Copy)]
pub(crate) struct At(u8);

impl At {
    const NONE: Self = Self(0x7f);
    /// The flag of arguments that have an element for each rank.
    const ARRAY: u8 = 0x80;

    /// The first parameter with one of these names.
    const fn first(call: Call, names: &[Name]) -> Self {
        let Some((name, rest)) = names.split_first() else { return Self::NONE };
        let Some(place) = call.position(*name) else { return Self::first(call, rest) };
        match call.parameters()[place].kind {
            Kind::CountArray | Kind::BigCountArray | Kind::DatatypeArray => Self(place as u8 | Self::ARRAY),
            _ => Self(place as u8),
        }
    }

    /// The position. That of an argument which the function lacks is out of bounds.
    #[inline(always)]
    pub(crate) fn place(self) -> usize {
        (self.0 & !Self::ARRAY).into()
    }

    /// The position; `None`: the function lacks the argument.
    #[inline(always)]
    pub(crate) fn get(self) -> Option<usize> {
        (self.0 != Self::NONE.0).then(|| self.place())
    }

    #[inline(always)]
    pub(crate) fn is_array(self) -> bool {
        self.0 & Self::ARRAY != 0
    }
}

/// The arguments that describe what is sent, or what is received. Functions with one description have it for both.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    pub(crate) count: At,
    pub(crate) datatype: At,
    pub(crate) peer: At,
    pub(crate) tag: At,
}

#[derive(Clone, Copy)]
pub(crate) struct ArgumentPlaces {
    pub(crate) comm: At,
    pub(crate) root: At,
    pub(crate) sendbuf: At,
    pub(crate) send: Side,
    pub(crate) recv: Side,
    /// Whether a probe has found a message, or a test completed requests.
    pub(crate) flag: At,
    pub(crate) message: At,
    /// The number of requests; functions with one request have none.
    pub(crate) requests_count: At,
    pub(crate) requests: At,
    /// The index of the completed request, or the number of completed requests.
    pub(crate) index: At,
    /// The indices of the completed requests.
    pub(crate) indices: At,
    pub(crate) status: At,
}

/// The arguments of each function.
static PLACES: [ArgumentPlaces; Call::COUNT] = {
    let mut all = [ArgumentPlaces::find(Call::MPI_Barrier); Call::COUNT];
    let mut number = 0;
    while let Some(call) = Call::from_number(number) {
        all[number as usize] = ArgumentPlaces::find(call);
        number += 1;
    }
    all
};

impl ArgumentPlaces {
    #[inline(always)]
    pub(crate) fn of(call: Call) -> &'static Self {
        &PLACES[call as usize]
    }

    const fn find(call: Call) -> Self {
        use mpi_abi::prototypes::Name::*;
        Self {
            comm: At::first(call, &[Comm]),
            root: At::first(call, &[Root]),
            sendbuf: At::first(call, &[Sendbuf]),
            send: Side {
                count: At::first(call, &[Sendcount, Sendcounts, Count]),
                datatype: At::first(call, &[Sendtype, Sendtypes, Datatype]),
                peer: At::first(call, &[Dest]),
                tag: At::first(call, &[Sendtag, Tag]),
            },
            recv: Side {
                count: At::first(call, &[Recvcount, Recvcounts, Count]),
                datatype: At::first(call, &[Recvtype, Recvtypes, Datatype]),
                peer: At::first(call, &[Source]),
                tag: At::first(call, &[Recvtag, Tag]),
            },
            flag: At::first(call, &[Flag]),
            message: At::first(call, &[Message]),
            requests_count: At::first(call, &[Count, Incount]),
            requests: At::first(call, &[ArrayOfRequests, Request]),
            index: At::first(call, &[Indx, Outcount]),
            indices: At::first(call, &[ArrayOfIndices]),
            status: At::first(call, &[ArrayOfStatuses, Status]),
        }
    }

    /// Whether the call completes either all of its requests or none.
    pub(crate) fn is_of_all(&self) -> bool {
        self.index.get().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::prototypes::Category;

    #[test]
    fn every_function_has_the_arguments_that_its_hook_reads() {
        for call in Call::all() {
            let ArgumentPlaces { comm, send, recv, message, requests, status, .. } =
                *ArgumentPlaces::of(call);
            let of = |side: Side| vec![comm, side.count, side.datatype, side.peer, side.tag];
            let read = match call.category() {
                Category::Send => of(send),
                Category::Recv if message.get().is_some() => vec![message],
                Category::Recv => of(recv),
                Category::SendRecv => [of(send), of(recv)].concat(),
                Category::Probe => vec![comm, recv.peer, recv.tag],
                Category::Collective => vec![comm],
                Category::Wait => vec![requests, status],
                Category::Start | Category::RequestFree => vec![requests],
                _ => vec![],
            };
            assert!(read.iter().all(|at| at.place() < call.parameters().len()), "{}", call.name());
        }
    }
}
