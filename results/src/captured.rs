//! What the times of a captured run contain, as traces, simulations and reports say it.

use std::fmt::Display;
use vef_format::container::About;
use vef_format::units::Count;

/// Warns of hosts that had more ranks than cores, if there are any: the first of them, and how many more.
pub fn too_few_cores(hosts: impl IntoIterator<Item = impl Display>) -> Option<String> {
    let mut hosts = hosts.into_iter();
    let first = hosts.next()?;
    let more = match hosts.count() {
        0 => String::new(),
        more => format!(" and {}", Count(more, "more host")),
    };
    Some(format!("{first}{more}: times in MPI include waiting for cores"))
}

/// What the computing times of a trace contain of the time in MPI, and are without; `sends`: also waits for the tasks' own sends.
pub fn computing_times(about: &About, sends: bool) -> Option<String> {
    let of = |name, what: &str| about.facts(name).map(|time| format!("{time} of {what}")).collect::<Vec<_>>();
    let mut kept = [
        if sends { of(About::SEND_WAITS, "waits for the tasks' own sends") } else { Vec::new() },
        of(About::POLLS, "failed polls"),
        of(About::OWN_WORK, "calls of MPI without a record (MPI_Irecv, windows, files)"),
    ]
    .concat();
    let without = about.facts(About::PREEMPTED);
    let without = without.map(|time| format!("are without {time} in which the tasks had no core"));
    if !kept.is_empty() {
        kept = vec![format!("contain, as long as captured, {}", kept.join(", "))];
    }
    kept.extend(without);
    (!kept.is_empty()).then(|| format!("computing times {}", kept.join("; they ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_computing_times_contain_is_one_sentence() {
        let mut about = About::default();
        assert_eq!(computing_times(&about, true), None);
        let mut add = |name: &str, time: &str| about.origin.push((name.to_owned(), time.to_owned()));
        add(About::SEND_WAITS, "1 s");
        add(About::OWN_WORK, "2 s");
        add(About::PREEMPTED, "3 s");
        assert_eq!(
            computing_times(&about, true).as_deref(),
            Some(
                "computing times contain, as long as captured, 1 s of waits for the tasks' own sends, 2 s of calls of MPI without a \
                 record (MPI_Irecv, windows, files); they are without 3 s in which the tasks had no core"
            )
        );
        about.origin.retain(|(name, _)| name == About::PREEMPTED);
        assert_eq!(
            computing_times(&about, true).as_deref(),
            Some("computing times are without 3 s in which the tasks had no core")
        );
    }

    #[test]
    fn one_host_stands_for_all_with_too_few_cores() {
        assert_eq!(too_few_cores([""; 0]), None);
        let told = |hosts: &[&str]| too_few_cores(hosts).unwrap_or_default();
        assert_eq!(told(&["a"]), "a: times in MPI include waiting for cores");
        assert_eq!(told(&["a", "b"]), "a and 1 more host: times in MPI include waiting for cores");
    }
}
