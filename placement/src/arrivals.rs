//! Lists of arriving jobs in the Standard Workload Format of the Parallel Workloads Archive
//! (<https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>): a job a line, with 18 numbers of which -1 is an unknown one.
//!
//! Of a job it takes when it was submitted, its processors, its executable and how long it may run. How long it ran and waited where it was recorded
//! does not count otherwise: that is what a simulation finds out.

use std::io::Read;

use crate::error::Error;
use crate::input::lines::read_bytes;

/// Fields of a line.
const FIELDS: usize = 18;
/// Their names, for errors.
const NAMES: [&str; FIELDS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "number of allocated processors",
    "average CPU time used",
    "used memory",
    "requested number of processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];

/// A list of arriving jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalList {
    file: String,
    nodes: Result<Option<u32>, Error>,
    /// The jobs, by submit time; of one time, in the order of their lines.
    pub arrivals: Vec<Arrival>,
    /// Lines that are no jobs which ran: cancelled ones that never did (status 5 without a run time), and parts of jobs that have a line of
    /// their own (status 2, 3, 4).
    pub left_out: u64,
}

/// A job of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its line, from 1.
    pub line: usize,
    /// Its number in the list.
    pub job: u64,
    /// When it was submitted, in seconds.
    pub submit: u64,
    /// Its processors: those allocated, or those requested if that is unknown.
    pub processors: u32,
    /// The number of its program, if it is known.
    pub executable: Option<u64>,
    /// For how many seconds it asked, or how long it ran, rounded up, if that is unknown.
    pub time: Option<u64>,
}

impl ArrivalList {
    /// Reads a list from a file of that name.
    ///
    /// # Errors
    /// The file cannot be read, has more than 256 MiB, or a line of a job is invalid: its number is in the error.
    pub fn read(input: impl Read, file: &str) -> Result<Self, Error> {
        // Comments may be in any encoding.
        Self::parse(&String::from_utf8_lossy(&read_bytes(input, file)?), file)
    }

    /// Reads a list from the text of a file of that name.
    ///
    /// # Errors
    /// As [`ArrivalList::read`].
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let (mut arrivals, mut left_out) = (Vec::new(), 0);
        let (mut nodes, mut processors) = (None, None);
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, content) in (1..).zip(text.lines()) {
            let wrong = |message: String| Error::new(message).at(file, line);
            if let Some(comment) = content.trim_start().strip_prefix(';') {
                let header = |name: &str| -> Option<Result<u32, Error>> {
                    let value = comment.trim().strip_prefix(name)?.trim();
                    Some(count(value).ok_or_else(|| wrong(format!("{name} {value:?}: not a number from 1"))))
                };
                nodes = header("MaxNodes:").or(nodes);
                processors = header("MaxProcs:").or(processors);
                continue;
            }
            match content.trim() {
                "" => {}
                content => match arrival(content, line).map_err(wrong)? {
                    Some(arrival) => arrivals.push(arrival),
                    None => left_out += 1,
                },
            }
        }
        arrivals.sort_by_key(|arrival| arrival.submit);
        Ok(Self { file: file.to_owned(), nodes: nodes.or(processors).transpose(), arrivals, left_out })
    }

    /// Nodes of the machine, if the header says it (`MaxNodes`, else `MaxProcs`).
    ///
    /// # Errors
    /// The header says it in a way that is not understood.
    pub fn nodes(&self) -> Result<Option<u32>, Error> {
        self.nodes.clone()
    }

    /// The program of each arrival: of programs with these numbers of ranks, the one that `executables` has for the arrival's executable, as pairs
    /// of both; of an executable that is not among them, the only program with as many ranks as the arrival has processors.
    ///
    /// # Errors
    /// The first line whose job has other processors than its program has ranks, or for which there are several programs or none; an executable of
    /// `executables` that no job has.
    ///
    /// # Panics
    /// `executables` has a program that is not in `ranks`.
    pub fn programs(&self, ranks: &[u32], executables: &[(u64, usize)]) -> Result<Vec<usize>, Error> {
        let is_of = |number: u64| self.arrivals.iter().any(|arrival| arrival.executable == Some(number));
        if let Some((number, _)) = executables.iter().find(|(number, _)| !is_of(*number)) {
            let message = format!("no job that ran has executable {number}, which is given a trace");
            return Err(Error::new(message).in_file(&self.file));
        }
        let program = |arrival: &Arrival| {
            let &Arrival { line, job, processors, executable, .. } = arrival;
            let wrong = |message: String| Error::new(message).at(&self.file, line);
            let named = executables.iter().find(|(number, _)| Some(*number) == executable);
            if let Some(&(executable, program)) = named {
                return match ranks[program] == processors {
                    true => Ok(program),
                    false => Err(wrong(format!(
                        "job {job} has {processors} processors; the trace of executable {executable} has {} ranks",
                        ranks[program]
                    ))),
                };
            }
            let mut fit = (0..ranks.len()).filter(|program| ranks[*program] == processors);
            match (fit.next(), fit.next()) {
                (Some(program), None) => Ok(program),
                (None, _) => Err(wrong(format!("job {job}: no trace has {processors} ranks"))),
                (Some(_), Some(_)) => Err(wrong(format!(
                    "job {job}: several traces have {processors} ranks, and executable {} has none of its own",
                    executable.map_or("-1".to_owned(), |number| number.to_string())
                ))),
            }
        };
        self.arrivals.iter().map(program).collect()
    }

    /// An error about the line of an arrival.
    pub fn error(&self, arrival: &Arrival, message: impl Into<String>) -> Error {
        Error::new(message).at(&self.file, arrival.line)
    }
}

/// The number of a header, from 1: thousands may have commas between them, and more text may follow.
fn count(value: &str) -> Option<u32> {
    let number = value.split_whitespace().next()?.trim_end_matches([',', ';', '.']);
    let has_thousands = number.split(',').skip(1).all(|group| group.len() == 3);
    number.replace(',', "").parse().ok().filter(|&number| has_thousands && number > 0)
}

/// The job of a line; `None` if it never ran, or is a part of one.
fn arrival(content: &str, line: usize) -> Result<Option<Arrival>, String> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    if fields.len() != FIELDS {
        return Err(format!("{} fields; a job has {FIELDS}", fields.len()));
    }
    if let Some((field, name)) =
        fields.iter().zip(NAMES).find(|(field, _)| !field.parse().is_ok_and(f64::is_finite))
    {
        return Err(format!("{name} {field:?}: not a number"));
    }
    // -1 and other negative numbers are unknown; some lists have whole numbers with a fraction of 0.
    let number = |at: usize| {
        let digits = fields[at].strip_prefix('-').unwrap_or(fields[at]);
        let is_whole = |fraction: &str| fraction.bytes().all(|digit| digit == b'0');
        let digits = match digits.split_once('.') {
            Some((whole, fraction)) if is_whole(fraction) => whole,
            _ => digits,
        };
        match digits.parse::<u64>() {
            Ok(number) => Ok((!fields[at].starts_with('-')).then_some(number)),
            Err(_) => Err(format!("{} {:?}: not a whole number", NAMES[at], fields[at])),
        }
    };
    let known = |at: usize| number(at)?.ok_or_else(|| format!("{} {}: unknown", NAMES[at], fields[at]));
    let (job, submit) = (known(0)?, known(1)?);
    let status = number(10)?;
    // Times that a job takes may have a fraction.
    let time = |at: usize| fields[at].parse().ok().filter(|&time: &f64| time > 0.0);
    if matches!(status, Some(2..=4)) || (status == Some(5) && time(3).is_none()) {
        return Ok(None);
    }
    let time = time(8).or(time(3)).map(|time| time.ceil() as u64);
    let processors = [number(4)?, number(7)?].into_iter().flatten().find(|&number| number > 0);
    let processors = processors.ok_or("the number of processors, allocated and requested, is unknown")?;
    let processors =
        u32::try_from(processors).map_err(|_| format!("{processors} processors are too many"))?;
    Ok(Some(Arrival { line, job, submit, processors, executable: number(13)?, time }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with these values of the fields that count.
    fn job(
        number: &str,
        submit: &str,
        run: &str,
        allocated: &str,
        requested: &str,
        rest: [&str; 2],
    ) -> String {
        let [status, executable] = rest;
        format!(
            "{number} {submit} -1 {run} {allocated} -1 -1 {requested} -1 -1 {status} 1 1 {executable} 1 -1 -1 -1\n"
        )
    }

    #[test]
    fn a_list_by_hand() {
        let text = [
            "; Version: 2.2\n;   MaxNodes: 128 (some are down)\n; MaxProcs: 256\n\n",
            &job("1", "30", "5", "4", "8", ["1", "7"]),
            &job("2", "0", "5.5", "-1", "2", ["0", "-1"]),
            &job("3", "0", "-1", "-1", "-1", ["5", "1"]),
            &job("4", "1", "5", "4", "4", ["3", "1"]),
            &job("5", "0", "60", "4", "4", ["5", "9"]),
        ]
        .concat();
        let list = ArrivalList::parse(&text, "list.swf").unwrap();
        assert_eq!((list.nodes(), list.left_out), (Ok(Some(128)), 2));
        let of = |a: &Arrival| (a.line, a.job, a.submit, a.processors, a.executable);
        let arrivals: Vec<_> = list.arrivals.iter().map(of).collect();
        assert_eq!(arrivals, [(6, 2, 0, 2, None), (9, 5, 0, 4, Some(9)), (5, 1, 30, 4, Some(7))]);
        assert_eq!(
            list.arrivals.iter().map(|job| job.time).collect::<Vec<_>>(),
            [Some(6), Some(60), Some(5)]
        );
        assert_eq!(list.programs(&[4, 2], &[]).unwrap(), [1, 0, 0]);
        assert_eq!(list.programs(&[4, 2, 4], &[(9, 2), (7, 0)]).unwrap(), [1, 2, 0]);
        let refused =
            |ranks: &[u32], executables: &[_]| list.programs(ranks, executables).unwrap_err().to_string();
        assert_eq!(refused(&[4], &[]), "list.swf:6: job 2: no trace has 2 ranks");
        assert_eq!(
            refused(&[4, 2, 4], &[(9, 0)]),
            "list.swf:5: job 1: several traces have 4 ranks, and executable 7 has none of its own"
        );
        assert_eq!(
            refused(&[4, 2], &[(9, 1)]),
            "list.swf:9: job 5 has 4 processors; the trace of executable 9 has 2 ranks"
        );
        assert_eq!(
            refused(&[4, 2], &[(9, 0), (8, 0)]),
            "list.swf: no job that ran has executable 8, which is given a trace"
        );
    }

    #[test]
    fn headers_are_read_as_they_are_written_and_only_where_they_are_needed() {
        let nodes = |text: &str| {
            let list = ArrivalList::parse(
                &format!("{text}\n1 0 -1 5 4 -1 -1 8 -1 -1 1 1 1 7 1 -1 -1 -1"),
                "list.swf",
            );
            list.unwrap().nodes().map_err(|error| error.to_string())
        };
        for (text, found) in [
            ("; Computer: a Cray", None),
            ("; MaxProcs: 4", Some(4)),
            (";MaxNodes:1,152", Some(1152)),
            ("; MaxNodes: 128, of which 2 are down", Some(128)),
            ("; MaxNodes: 1,234,567.", Some(1_234_567)),
            ("\u{feff}; MaxNodes: 7", Some(7)),
            ("; MaxProcs: many\n; MaxNodes: 3", Some(3)),
        ] {
            assert_eq!(nodes(text), Ok(found), "{text}");
        }
        for (text, value) in
            [("many", "many"), ("0", "0"), ("-1", "-1"), ("1,15", "1,15"), ("2*64", "2*64"), ("", "")]
        {
            let error = format!("list.swf:2: MaxNodes: {value:?}: not a number from 1");
            assert_eq!(nodes(&format!("; MaxProcs: 4\n; MaxNodes: {text}")), Err(error), "{text}");
        }
    }

    #[test]
    fn whole_numbers_may_have_a_fraction_of_0() {
        let line = "\u{feff}1.0 30.00 -1.0 5.5 4.0 -1 -1 -1.0 7.25 -1 1.0 1 1 7. 1 -1 -1 -1";
        let list = ArrivalList::parse(line, "list.swf").unwrap();
        let job = Arrival { line: 1, job: 1, submit: 30, processors: 4, executable: Some(7), time: Some(8) };
        assert_eq!(list.arrivals, [job]);
    }

    #[test]
    fn invalid_lines_are_named() {
        let good = job("1", "30", "5", "4", "8", ["1", "7"]);
        for (line, error) in [
            ("1 30 -1 5 4", "5 fields; a job has 18"),
            ("x 30 -1 5 4 -1 -1 8 -1 -1 1 1 1 7 1 -1 -1 -1", "job number \"x\": not a number"),
            ("1 3.5 -1 5 4 -1 -1 8 -1 -1 1 1 1 7 1 -1 -1 -1", "submit time \"3.5\": not a whole number"),
            ("1 -1 -1 5 4 -1 -1 8 -1 -1 1 1 1 7 1 -1 -1 -1", "submit time -1: unknown"),
            (
                "1 30 -1 5 0 -1 -1 -1 -1 -1 1 1 1 7 1 -1 -1 -1",
                "the number of processors, allocated and requested, is unknown",
            ),
            ("1 30 -1 5 4294967296 -1 -1 -1 -1 -1 1 1 1 7 1 -1 -1 -1", "4294967296 processors are too many"),
            ("1 30 -1 5 4 nan -1 8 -1 -1 1 1 1 7 1 -1 -1 -1", "average CPU time used \"nan\": not a number"),
            (
                "99999999999999999999 30 -1 5 4 -1 -1 8 -1 -1 1 1 1 7 1 -1 -1 -1",
                "job number \"99999999999999999999\": not a whole number",
            ),
            ("\u{fffd}\u{fffd}", "1 fields; a job has 18"),
        ] {
            let found = ArrivalList::parse(&format!("; a list\n{good}{line}\n"), "list.swf").unwrap_err();
            assert_eq!(found.to_string(), format!("list.swf:3: {error}"));
        }
    }
}
