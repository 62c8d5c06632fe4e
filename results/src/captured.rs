//! What the times of a captured run contain, as traces, simulations and reports say it.

use std::collections::BTreeSet;
use std::fmt::Display;
use vef_format::container::About;
use vef_format::units::{Count, Grouped};

/// Warns of hosts that had more ranks than cores, if there are any: the first of them, and how many more. Those of joined traces may be the same.
pub fn too_few_cores(hosts: impl IntoIterator<Item = impl Display>) -> Option<String> {
    let hosts: Vec<String> = hosts.into_iter().map(|host| host.to_string()).collect();
    let first = hosts.first()?;
    let more = match hosts.iter().collect::<BTreeSet<_>>().len() {
        1 => String::new(),
        several => format!(" and {}", Count(several - 1, "more host")),
    };
    Some(format!("{first}{more}: times in MPI include waiting for cores"))
}

/// Says that some of the ranks were not recorded, if there are any.
pub fn unrecorded(unrecorded: u32, ranks: u32) -> Option<String> {
    (unrecorded > 0).then(|| {
        let of = Count(ranks, "rank");
        format!("{} of {of} not recorded: means and shares are those of the others", Grouped(unrecorded))
    })
}

/// What the computing times of a captured run contain of the time in MPI, and leave out; `sends`: also waits for the tasks' own sends. A part of
/// the run has the same facts.
pub fn computing_times(about: &About, sends: bool) -> Option<String> {
    let of = |name, what: &str| about.facts(name).map(|time| format!("{time} of {what}")).collect::<Vec<_>>();
    let kept = [
        if sends { of(About::SEND_WAITS, "waits for the tasks' own sends") } else { Vec::new() },
        of(About::POLLS, "failed polls"),
        of(About::OWN_WORK, "MPI calls that have no record (such as MPI_Irecv and accesses to files)"),
        of(About::PREEMPTED_KEPT, "what tasks spent outside MPI without a core"),
    ]
    .concat();
    let without = about.facts(About::PREEMPTED).cloned().collect::<Vec<_>>();
    let mut parts = Vec::new();
    if !kept.is_empty() {
        parts.push(format!("contain {}", kept.join(", ")));
    }
    if !without.is_empty() {
        parts.push(format!("leave out {} in which tasks had no core", without.join(" and ")));
    }
    let outside = about.facts(About::ANSWERED_OUTSIDE).cloned().collect::<Vec<_>>();
    if !outside.is_empty() {
        parts.push(format!(
            "may lack what targets computed before {} that something else answered: here the targets wait for these (vef mix --rma hardware)",
            outside.join(" and ")
        ));
    }
    (!parts.is_empty())
        .then(|| format!("computing times of the whole captured run {}", parts.join("; they ")))
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
                "computing times of the whole captured run contain 1 s of waits for the tasks' own sends, 2 s of MPI calls that have no \
                 record (such as MPI_Irecv and accesses to files); they leave out 3 s in which tasks had no core"
            )
        );
        about.origin.retain(|(name, _)| name == About::PREEMPTED);
        assert_eq!(
            computing_times(&about, true).as_deref(),
            Some("computing times of the whole captured run leave out 3 s in which tasks had no core")
        );
        about.origin.push((About::ANSWERED_OUTSIDE.to_owned(), "2 one-sided requests".to_owned()));
        assert_eq!(
            computing_times(&about, true).as_deref(),
            Some(
                "computing times of the whole captured run leave out 3 s in which tasks had no core; they may lack what targets computed before \
                 2 one-sided requests that something else answered: here the targets wait for these (vef mix --rma hardware)"
            )
        );
    }

    #[test]
    fn one_host_stands_for_all_with_too_few_cores() {
        assert_eq!(too_few_cores([""; 0]), None);
        let told = |hosts: &[&str]| too_few_cores(hosts).unwrap_or_default();
        assert_eq!(told(&["a"]), "a: times in MPI include waiting for cores");
        assert_eq!(told(&["a", "a"]), told(&["a"]));
        assert_eq!(told(&["a", "b", "a"]), "a and 1 more host: times in MPI include waiting for cores");
    }
}
