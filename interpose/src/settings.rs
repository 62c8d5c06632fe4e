//! Settings from the environment, read once, in `MPI_Init`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use vef_format::capture::layout::LONGEST_PHASE;

/// The settings of this process; `docs/capture.md` has the table of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `VEF_DIR`: the directory of the capture.
    pub(crate) dir: PathBuf,
    /// `VEF_TRACE=0`: record nothing.
    pub(crate) enabled: bool,
    /// `VEF_CLOCK=monotonic`: do not use the cycle counter.
    pub(crate) cycles: bool,
    /// `VEF_MAX_SIZE`: the size of a rank's file, in bytes, at which recording stops.
    pub(crate) max_size: u64,
    /// `VEF_STOP_AFTER`: after how long, or how many calls of a rank, recording stops.
    pub(crate) stop_after: Option<StopAfter>,
    /// `VEF_TOOLS`, else `TOOLS`: the tools between the program and MPI; `None`: the recorder alone.
    pub(crate) tools: Option<String>,
    /// `VEF_PHASE`: record only this phase of the program.
    pub(crate) phase: Option<String>,
    /// `VEF_RANKS`: record only these ranks.
    pub(crate) ranks: Option<RankSet>,
    /// `VEF_FRESH=1`: never overwrite a rank file, because it belongs to another process of this run.
    pub(crate) fresh: bool,
    /// Variables with invalid values, as `NAME=value`.
    pub(crate) invalid: Vec<String>,
}

/// When recording stops, counted from its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopAfter {
    /// `90s`, `1500000ns`.
    Time(Duration),
    /// `1000000`: calls of all threads.
    Calls(u64),
}

impl StopAfter {
    fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| digits.parse().ok();
        Some(match (text.strip_suffix("ns"), text.strip_suffix('s')) {
            (Some(digits), _) => Self::Time(Duration::from_nanos(number(digits)?)),
            (None, Some(digits)) => Self::Time(Duration::from_secs(number(digits)?)),
            (None, None) => Self::Calls(number(text)?),
        })
    }
}

/// A set of ranks, as inclusive ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankSet(Vec<(u32, u32)>);

impl RankSet {
    /// Parses `0-3,8`.
    fn parse(text: &str) -> Option<Self> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some((first, last))
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn has(&self, rank: u32) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&rank))
    }
}

impl Settings {
    /// Reads the environment; invalid values are ignored.
    pub(crate) fn from_env() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut variables = Variables { get: variable, invalid: Vec::new() };
        let dir = (variables.get)("VEF_DIR").filter(|dir| !dir.is_empty());
        Self {
            // A path need not be UTF-8.
            dir: dir.map_or_else(|| "vef-capture".into(), PathBuf::from),
            enabled: variables.choose("VEF_TRACE", ["0", "1"]) != Some(0),
            cycles: variables.choose("VEF_CLOCK", ["monotonic", "cycles"]) != Some(0),
            max_size: variables.read("VEF_MAX_SIZE", parse_size).unwrap_or(u64::MAX),
            stop_after: variables.read("VEF_STOP_AFTER", StopAfter::parse),
            tools: variables
                .text("VEF_TOOLS")
                .or_else(|| variables.text("TOOLS"))
                .filter(|tools| !tools.trim_matches([':', ' ']).is_empty()),
            phase: variables.read("VEF_PHASE", |name| (name.len() <= LONGEST_PHASE).then(|| name.to_owned())),
            ranks: variables.read("VEF_RANKS", RankSet::parse),
            fresh: variables.choose("VEF_FRESH", ["0", "1"]) == Some(1),
            invalid: variables.invalid,
        }
    }
}

/// The environment, and which of its values were invalid.
struct Variables<G> {
    get: G,
    invalid: Vec<String>,
}

impl<G: Fn(&str) -> Option<OsString>> Variables<G> {
    /// The text of a variable; `None` if it is not set, or no UTF-8.
    fn text(&mut self, name: &str) -> Option<String> {
        let value = (self.get)(name)?;
        let invalid = |value: OsString| self.invalid.push(format!("{name}={}", value.to_string_lossy()));
        value.into_string().map_err(invalid).ok()
    }

    /// The value of a variable; `None` if it is not set, empty or invalid.
    fn read<T>(&mut self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.text(name).filter(|value| !value.is_empty())?;
        let parsed = parse(&value);
        if parsed.is_none() {
            self.invalid.push(format!("{name}={value}"));
        }
        parsed
    }

    /// The index of a variable's value in a list.
    fn choose(&mut self, name: &str, values: [&str; 2]) -> Option<usize> {
        self.read(name, |given| values.iter().position(|value| *value == given))
    }
}

/// Parses bytes, or a number with a suffix K, M, G or T (powers of 1024).
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.trim().as_bytes() {
        [digits @ .., b'k' | b'K'] => (digits, 10),
        [digits @ .., b'm' | b'M'] => (digits, 20),
        [digits @ .., b'g' | b'G'] => (digits, 30),
        [digits @ .., b't' | b'T'] => (digits, 40),
        digits => (digits, 0),
    };
    std::str::from_utf8(digits).ok()?.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_ranks() {
        let some = RankSet::parse("0-3, 8").expect("a set");
        let members: Vec<u32> = (0..20).filter(|&rank| some.has(rank)).collect();
        assert_eq!(members, [0, 1, 2, 3, 8]);
        for wrong in ["", "3-1", "a", "1,,2", "-1"] {
            assert_eq!(RankSet::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_and_numbers_of_calls() {
        assert_eq!(StopAfter::parse("90s"), Some(StopAfter::Time(Duration::from_secs(90))));
        assert_eq!(StopAfter::parse("1500ns"), Some(StopAfter::Time(Duration::from_nanos(1500))));
        assert_eq!(StopAfter::parse("1000"), Some(StopAfter::Calls(1000)));
        for wrong in ["", "s", "ns", "-1", "1.5s", "5 min"] {
            assert_eq!(StopAfter::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn defaults_and_values() {
        let of = |set: &[(&str, &str)]| {
            Settings::from(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            })
        };
        let default = of(&[("VEF_DIR", "")]);
        assert_eq!(default.dir, PathBuf::from("vef-capture"));
        assert!(
            default.enabled && default.cycles && default.max_size == u64::MAX && default.invalid.is_empty()
        );
        let set = of(&[("VEF_MAX_SIZE", "3M"), ("VEF_TRACE", "0")]);
        assert_eq!((set.max_size, set.enabled, set.invalid), (3 << 20, false, vec![]));
        let wrong =
            [("VEF_TRACE", "maybe"), ("VEF_CLOCK", "sun"), ("VEF_MAX_SIZE", "lots"), ("VEF_RANKS", "3-1")];
        let invalid = wrong.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(of(&wrong), Settings { invalid, ..of(&[]) });
        let phase = |length| of(&[("VEF_PHASE", &"p".repeat(length))]);
        assert_eq!(phase(LONGEST_PHASE).phase.map(|name| name.len()), Some(LONGEST_PHASE));
        let refused = phase(LONGEST_PHASE + 1);
        assert_eq!((refused.phase, refused.invalid.len()), (None, 1));
        use std::os::unix::ffi::OsStringExt;
        let latin1 = || OsString::from_vec(b"caf\xe9".to_vec());
        let all = Settings::from(|name| ["VEF_DIR", "VEF_PHASE"].contains(&name).then(latin1));
        assert_eq!((all.dir, all.invalid), (latin1().into(), vec!["VEF_PHASE=caf\u{fffd}".to_owned()]));
        assert_eq!(
            ["7", "1k", "x", "-1", "9999999999T"].map(parse_size),
            [Some(7), Some(1024), None, None, None]
        );
    }
}
