//! A line of liballprof's texts: a call with its arguments.

use crate::calls::process::Envelope;
use crate::error::Problem;

pub(super) type Fallible<T> = std::result::Result<T, Problem>;

/// A line, in fields.
pub(super) struct Line<'a> {
    pub(super) function: &'a str,
    pub(super) arguments: Vec<&'a str>,
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
    /// Whether it lists the counts of a vector form.
    pub(super) lists: bool,
    /// The id of its communicator, in place of the handle.
    pub(super) comm: Option<u64>,
}

/// The arguments of vector forms where counts and displacements are listed, and which are the addresses of these lists.
fn listing(function: &str) -> Option<(usize, &'static [usize])> {
    Some(match function {
        "MPI_Allgatherv" => (10, &[4, 6]),
        "MPI_Alltoallv" => (13, &[1, 3, 7, 9]),
        "MPI_Gatherv" => (11, &[4, 6]),
        "MPI_Reduce_scatter" => (7, &[2]),
        "MPI_Scatterv" => (11, &[1, 3]),
        _ => return None,
    })
}

/// Time in µs with a fraction, as ns.
fn nanos(text: &str) -> Fallible<Option<u64>> {
    if text == "-" {
        return Ok(None);
    }
    let wrong = || Problem::Expected { expected: "a time in µs", found: text.to_owned() };
    if text.is_empty() {
        return Err(wrong());
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.get(..fraction.len().min(3)).ok_or_else(wrong)?;
    let number = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<u64>().map_err(|_| wrong()) };
    let scale = 10u64.pow(3 - digits.len() as u32);
    let nanos = number(whole)?.checked_mul(1000).and_then(|nanos| Some(nanos + number(digits).ok()? * scale));
    number(digits)?;
    nanos.ok_or_else(wrong).map(Some)
}

impl<'a> Line<'a> {
    pub(super) fn of(text: &'a str) -> Fallible<Self> {
        let mut fields = text.split(':').map(str::trim);
        let (Some(function), Some(start), Some(end)) = (fields.next(), fields.next(), fields.next_back())
        else {
            let found = text.chars().take(40).collect();
            return Err(Problem::Expected { expected: "Function:start:arguments:end", found });
        };
        let (start, end) = (nanos(start)?, nanos(end)?);
        let mut arguments: Vec<&str> = fields.collect();
        let addresses = listing(function).filter(|(count, _)| arguments.len() == *count);
        for &address in addresses.iter().flat_map(|(_, addresses)| *addresses).rev() {
            arguments.remove(address);
        }
        Ok(Self { function, arguments, start, end, lists: addresses.is_some(), comm: None })
    }

    pub(super) fn is_finalize(&self) -> bool {
        self.function == "MPI_Finalize"
    }

    pub(super) fn field(&self, at: usize) -> Fallible<&'a str> {
        let missing =
            || Problem::Expected { expected: "a further argument", found: "the end of the call".to_owned() };
        self.arguments.get(at).copied().ok_or_else(missing)
    }

    pub(super) fn number(&self, at: usize) -> Fallible<i64> {
        let text = self.field(at)?;
        number(text).ok_or(Problem::Expected { expected: "a number", found: text.to_owned() })
    }

    /// Handle and the two numbers behind it.
    pub(super) fn triple(&self, at: usize) -> Fallible<[i64; 3]> {
        let text = self.field(at)?;
        let numbers: Option<Vec<i64>> = text.split(',').map(number).collect();
        match numbers.as_deref() {
            Some(&[one, two, three]) => Ok([one, two, three]),
            _ => Err(Problem::Expected { expected: "a handle with two numbers", found: text.to_owned() }),
        }
    }

    /// A communicator.
    pub(super) fn comm(&self, at: usize) -> Fallible<u64> {
        let [handle, ..] = self.triple(at)?;
        Ok(self.comm.unwrap_or(handle as u64))
    }

    /// Bytes of a count of elements.
    pub(super) fn bytes(&self, count: usize, datatype: usize) -> Fallible<u64> {
        let (count, [_, size, _]) = (self.number(count)?, self.triple(datatype)?);
        bytes(count, size)
    }

    /// A send or receive from argument `at` on: count, datatype, peer, tag.
    pub(super) fn envelope(&self, at: usize, comm: usize) -> Fallible<Envelope> {
        let bytes = self.bytes(at, at + 1)?;
        let (peer, tag, comm) = (self.number(at + 2)?, self.number(at + 3)? as i32, self.comm(comm)?);
        let count = i64::try_from(bytes).map_err(|_| Problem::TooLarge(format!("{bytes} bytes")))?;
        Ok(Envelope { count, datatype: BYTES, peer, tag, comm })
    }

    /// The counts of a vector form, if they are listed.
    pub(super) fn counts(&self, at: usize, datatype: usize) -> Fallible<Option<Vec<u64>>> {
        let text = self.field(at)?;
        if !self.lists && !text.contains(',') {
            return Ok(None);
        }
        let [_, size, _] = self.triple(datatype)?;
        let wrong = || Problem::Expected { expected: "counts", found: text.chars().take(40).collect() };
        let counts = text
            .trim_end_matches(',')
            .split(',')
            .map(|count| number(count).ok_or_else(wrong).and_then(|count| bytes(count, size)));
        counts.collect::<Fallible<_>>().map(Some)
    }

    /// Where the communicator stands.
    pub(super) fn position_of_comm(&self) -> Option<usize> {
        Some(match self.function.strip_prefix("MPI_")? {
            "Barrier" | "Comm_split" | "Comm_dup" | "Comm_rank" | "Comm_size" => 0,
            "Bcast" => 4,
            "Send" | "Bsend" | "Ssend" | "Rsend" | "Isend" | "Ibsend" | "Issend" | "Irsend" | "Recv"
            | "Irecv" => 5,
            "Reduce" => 6,
            "Allreduce" | "Scan" | "Exscan" => 5,
            "Reduce_scatter" => 5,
            "Allgather" | "Alltoall" => 6,
            "Gather" | "Scatter" | "Allgatherv" => 7,
            "Gatherv" | "Scatterv" | "Alltoallv" => 8,
            "Sendrecv" => 10,
            _ => return None,
        })
    }
}

/// The datatype of counts that are bytes.
pub(super) const BYTES: u64 = 0;

pub(super) fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    // Addresses may use all bits.
    text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|number| number as i64))
}

pub(super) fn bytes(count: i64, size: i64) -> Fallible<u64> {
    let product = u64::try_from(count).ok().zip(u64::try_from(size).ok()).and_then(|(a, b)| a.checked_mul(b));
    product.ok_or_else(|| Problem::Expected {
        expected: "a count and a size",
        found: format!("{count} and {size}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let of = |text| nanos(text).unwrap();
        assert_eq!(of("3.0"), Some(3000));
        assert_eq!(of("1225017231123456.25"), Some(1_225_017_231_123_456_250));
        assert_eq!(of("7.1239"), Some(7123));
        assert_eq!(of("-"), None);
        assert!(nanos("1e6").is_err() && nanos("1.x").is_err() && nanos("99999999999999999999").is_err());
    }

    #[test]
    fn fields_of_a_line() {
        let line = Line::of("MPI_Send:11.5:5648928:2:11,8,8:3:7:0,1,4:12").unwrap();
        assert_eq!((line.function, line.start, line.end), ("MPI_Send", Some(11_500), Some(12_000)));
        let envelope = line.envelope(1, 5).unwrap();
        assert_eq!((envelope.count, envelope.peer, envelope.tag, envelope.comm), (16, 3, 7, 0));
        assert!(Line::of("MPI_Send").is_err());
        assert!(Line::of("MPI_Send:1:2").unwrap().envelope(1, 5).is_err());
    }
}
