//! Imports prefixes and mutations of samples of other tools' traces: each must be refused with an error or imported, whole or as a part,
//! without a panic, a hang or much memory.
//!
//! ```text
//! ulimit -v 1500000; cargo run --release -p interchange --example garble -- PREFIXES MUTATIONS SECONDS SAMPLE…
//! ```
//!
//! A SAMPLE is a file, or the directory of a run of several ranks. Each has at most SECONDS, PREFIXES, which are spread evenly over all of
//! its files if it has more, besides those that end within 2 KiB of the beginning or the end of a file, and MUTATIONS of one to four
//! bytes, numbers or stretches. Mutations are numbered from 0; `FIRST..END` in place of their number continues a run. Half of the imports
//! accept parts; some are mixed or validated, too. An input that fails is kept, and the exit code is 1.

#![allow(clippy::print_stdout, reason = "a command")]

use flate2::read::MultiGzDecoder;
use interchange::{Files, Format, Imported, Options, Quiet, import};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::error::Error;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use vef_format::validate::{Kind, Problem, Severity, validate};

/// What an import may take of processor time. Beside other programs it may last longer.
const LONGEST: Duration = Duration::from_secs(20);
/// One import of this many is also mixed, or validated.
const WHOLE: u64 = 16;
/// Bytes at both ends of each file of which every prefix is imported.
const ENDS: usize = 2048;
/// Values at which readers decide.
const BYTES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff, b'-'];
const NUMBERS: [&str; 6] =
    ["0", "-1", "4294967295", "4294967296", "18446744073709551615", "99999999999999999999"];

/// What is imported now, since when, and the processor time until then.
static NOW: Mutex<Option<(String, Instant, Duration)>> = Mutex::new(None);

/// A copy of a sample, one file of which is replaced by another content at a time.
struct Sample {
    directory: PathBuf,
    format: Format,
    files: Vec<(PathBuf, Vec<u8>)>,
    imports: u64,
    accepted: u64,
    failed: u64,
}

/// Copies a file, or the files of a directory, without their compression by gzip.
fn copy(from: &Path, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<(), Box<dyn Error>> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?.path();
            copy(&entry, &to.join(entry.file_name().ok_or("a name")?), files)?;
        }
        return Ok(());
    }
    let mut bytes = fs::read(from)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain)?;
        bytes = plain;
    }
    fs::write(to, &bytes)?;
    files.push((to.to_path_buf(), bytes));
    Ok(())
}

impl Sample {
    fn of(path: &Path, directory: &Path) -> Result<Self, Box<dyn Error>> {
        let (to, mut files) = (directory.join("in"), Vec::new());
        fs::create_dir_all(&to)?;
        match path.is_dir() {
            true => copy(path, &to, &mut files)?,
            false => copy(path, &to.join(path.file_name().ok_or("a name")?), &mut files)?,
        }
        let format = Format::of(&Files::of(&[to])?)?;
        files.sort();
        Ok(Self { directory: directory.to_path_buf(), format, files, imports: 0, accepted: 0, failed: 0 })
    }

    fn options(&self) -> Options {
        let partial = self.imports % 2 == 1;
        Options { partial, flops_per_second: Some(1e9), ..Options::default() }
    }

    /// Imports the sample with another content of a file; keeps it if that panics.
    fn import(&mut self, file: usize, bytes: &[u8], what: &str) -> Result<(), Box<dyn Error>> {
        fs::write(&self.files[file].0, bytes)?;
        *NOW.lock().map_err(|_| "a lock")? =
            Some((format!("{what} of {}", self.files[file].0.display()), Instant::now(), used()));
        let done = catch_unwind(AssertUnwindSafe(|| self.imported()));
        *NOW.lock().map_err(|_| "a lock")? = None;
        self.imports += 1;
        match done {
            Ok(accepted) => self.accepted += u64::from(accepted),
            Err(_) => {
                self.failed += 1;
                let name = self.files[file].0.file_name().and_then(|name| name.to_str()).unwrap_or("");
                let kept =
                    std::env::temp_dir().join(format!("garble-{:?}-{}-{name}", self.format, self.imports));
                fs::write(&kept, bytes)?;
                println!("PANIC: {what} of {name}: kept as {}", kept.display());
            }
        }
        Ok(())
    }

    /// Whether the files are accepted.
    fn imported(&self) -> bool {
        let (options, trace) = (self.options(), self.directory.join("t.vef"));
        let capture = self.directory.join("capture");
        // That of the import before.
        let _ = fs::remove_dir_all(&capture);
        let Ok(files) = Files::of(&[self.directory.join("in")]) else { return false };
        let is_whole = (self.imports / 2).is_multiple_of(WHOLE);
        if let (Some(check), true) = (self.format.info().checker, is_whole) {
            let _ = check(&files, &options, &Quiet);
        }
        match import(self.format, &files, &trace, || Ok(capture.clone()), &options, &Quiet) {
            Err(_) => false,
            Ok(Imported::Trace(_)) if is_whole => {
                assert_valid(&trace, false);
                true
            }
            Ok(Imported::Trace(_)) => true,
            Ok(Imported::Capture { directory, .. }) if is_whole => {
                let settings = mixer::Options { lenient: options.partial, jobs: 1, ..Default::default() };
                let mixed = mixer::mix(&directory, &trace, &settings, &mixer::Quiet).is_ok();
                if mixed {
                    assert_valid(&trace, true);
                }
                mixed
            }
            Ok(Imported::Capture { .. }) => true,
        }
    }

    /// Prefixes that end within [`ENDS`] bytes of the beginning or the end of their file, then `most` that cover all files evenly; or all
    /// prefixes; how many.
    fn prefixes(&mut self, most: u64, until: Instant) -> Result<u64, Box<dyn Error>> {
        let lengths: Vec<usize> = self.files.iter().map(|(_, bytes)| bytes.len()).collect();
        let total: u64 = lengths.iter().map(|&length| length as u64).sum();
        let mut places = Vec::new();
        if (1..total).contains(&most) {
            for (file, &length) in lengths.iter().enumerate() {
                let ends = (0..length.min(ENDS)).chain(length.saturating_sub(ENDS).max(ENDS)..length);
                places.extend(ends.map(|at| (file, at)));
            }
        }
        let step = (1 + total * 618 / 1000..).find(|&step| gcd(step, total) == 1).unwrap_or(1);
        for number in 0..most.min(total) {
            let mut at = ((u128::from(number) * u128::from(step)) % u128::from(total)) as usize;
            let mut file = 0;
            while at >= lengths[file] {
                at -= lengths[file];
                file += 1;
            }
            places.push((file, at));
        }
        for (number, &(file, at)) in (1..).zip(&places) {
            let whole = self.files[file].1.clone();
            self.import(file, &whole[..at], &format!("prefix {at}"))?;
            fs::write(&self.files[file].0, &whole)?;
            if Instant::now() > until {
                return Ok(number);
            }
        }
        Ok(places.len() as u64)
    }

    /// Imports with mutations of these seeds; how many there was time for.
    fn mutations(&mut self, seeds: Range<u64>, until: Instant) -> Result<u64, Box<dyn Error>> {
        for seed in seeds.clone() {
            if Instant::now() > until {
                return Ok(seed - seeds.start);
            }
            let mut random = SmallRng::seed_from_u64(seed);
            let file = random.random_range(0..self.files.len());
            let whole = self.files[file].1.clone();
            let mut bytes = whole.clone();
            for _ in 0..random.random_range(1..5) {
                mutate(&mut bytes, &mut random);
            }
            self.import(file, &bytes, &format!("mutation {seed}"))?;
            fs::write(&self.files[file].0, &whole)?;
        }
        Ok(seeds.end.saturating_sub(seeds.start))
    }
}

/// Calls may contradict each other so that a replay is stuck, which `vef check` explains; graphs that cannot end are refused.
fn assert_valid(trace: &Path, may_be_stuck: bool) {
    let report = validate(trace, &Default::default()).expect("an imported trace can be read");
    let wrong = |problem: &&Problem| {
        problem.severity == Severity::Error && !(may_be_stuck && problem.kind == Kind::Cycle)
    };
    let wrong: Vec<&Problem> = report.problems.iter().filter(wrong).collect();
    assert!(wrong.is_empty() && (may_be_stuck || report.stuck_tasks == 0), "{wrong:?}");
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut SmallRng) {
    if bytes.is_empty() {
        return;
    }
    let at = random.random_range(0..bytes.len());
    let from = random.random_range(0..bytes.len());
    let length = random.random_range(1..64usize).min(bytes.len() - at.max(from));
    match random.random_range(0..8) {
        0 | 1 => bytes[at] = BYTES[random.random_range(0..BYTES.len())],
        2 => bytes[at] ^= 1 << random.random_range(0..8u32),
        3 => bytes[at] = random.random(),
        // Another place of the file; twice; not at all.
        4 => bytes.copy_within(from..from + length, at),
        5 => {
            let again = bytes[from..from + length].to_vec();
            drop(bytes.splice(at..at, again));
        }
        6 => drop(bytes.drain(at..at + length)),
        // A number of a text, or four bytes of a binary file.
        _ => match bytes[at] {
            b'0'..=b'9' => {
                let end = bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(1);
                drop(bytes.splice(at..at + end, NUMBERS[random.random_range(0..NUMBERS.len())].bytes()));
            }
            _ => {
                let end = bytes.len().min(at + 4);
                bytes[at..end].fill(BYTES[random.random_range(0..BYTES.len())]);
            }
        },
    }
}

/// Ends the process where an import takes too long; its input stays where it is.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        if let Ok(now) = NOW.lock()
            && let Some((what, since, processor)) = &*now
            && (used().saturating_sub(*processor) > LONGEST || since.elapsed() > 30 * LONGEST)
        {
            println!("HANG: {what}: more than {} s", LONGEST.as_secs());
            std::process::exit(1);
        }
    }
}

/// Processor time of the first thread, which imports; 0 where the system does not say it.
fn used() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut range = || {
        let word = arguments.next()?;
        let (first, end) = word.split_once("..").unwrap_or(("0", &word));
        Some(first.parse::<u64>().ok()?..end.parse::<u64>().ok()?)
    };
    let (Some(prefixes), Some(seeds), Some(seconds)) = (range(), range(), range()) else {
        return Err("garble PREFIXES MUTATIONS SECONDS SAMPLE…".into());
    };
    std::thread::spawn(watch);
    let memory = Path::new("/dev/shm");
    let mut failed = 0;
    for path in arguments {
        // Each import writes files: in memory, where there is such a file system.
        let work = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }?;
        let begin = Instant::now();
        let until = begin + Duration::from_secs(seconds.end);
        let mut sample = Sample::of(Path::new(&path), work.path())?;
        if !sample.imported() {
            return Err(format!("{path} itself is refused: nothing would be tried").into());
        }
        let total: usize = sample.files.iter().map(|(_, bytes)| bytes.len()).sum();
        let prefixes = sample.prefixes(prefixes.end, until)?;
        let mutations = sample.mutations(seeds.clone(), until)?;
        println!(
            "{path}: {:?}, {} files: {prefixes} of {total} prefixes, {mutations} mutations from {}: {} of {} accepted, {} panics, {:.0} s",
            sample.format,
            sample.files.len(),
            seeds.start,
            sample.accepted,
            sample.imports,
            sample.failed,
            begin.elapsed().as_secs_f64()
        );
        failed += sample.failed;
    }
    if failed > 0 {
        return Err(format!("{failed} inputs made a panic").into());
    }
    Ok(())
}
