//! Shows what ranks do, in a number of lines of a given width: all ranks, or a summary and the extremes.

use super::{Activity, RankActivity};
use std::time::Duration;
use vef_format::units::{Bytes, Grouped, Printable};

/// Silence shorter than this is not worth a word.
const QUIET: Duration = Duration::from_secs(2);

/// On all ranks, for a run that has taken `elapsed`: the sums of their rates, the median share of waiting and its extremes.
pub fn summary(ranks: &[Activity], elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    if ranks.is_empty() {
        return format!("{seconds} s: no rank has returned from MPI_Init");
    }
    let running: Vec<&Activity> = ranks.iter().filter(|rank| is_running(rank)).collect();
    let sum =
        |value: fn(&Activity) -> f64| running.iter().map(|rank| value(rank)).sum::<f64>().round() as u64;
    let (messages, bytes) = (Grouped(sum(|rank| rank.messages)), Bytes(sum(|rank| rank.bytes)));
    let mut text =
        format!("{seconds} s: {}/{} ranks, {messages} messages/s, {bytes}/s", running.len(), ranks.len());
    let mut waiting: Vec<f64> = running.iter().filter_map(|rank| Some(rank.shares?.waiting)).collect();
    waiting.sort_by(f64::total_cmp);
    if let [least, .., most] | [least @ most] = waiting[..] {
        let median = (waiting[(waiting.len() - 1) / 2] + waiting[waiting.len() / 2]) / 2.0;
        let [median, least, most] = [median, least, most].map(|share| 100.0 * share);
        text.push_str(&format!(", waiting {median:.0} % ({least:.0} to {most:.0})"));
    }
    let quiet = running.iter().filter(|rank| rank.quiet >= QUIET).count();
    if quiet > 0 {
        text.push_str(&format!(", {quiet} without a call for 2 s"));
    }
    if running.iter().any(|rank| rank.state == RankActivity::Behind) {
        text.push_str(", more is recorded than can be shown: view is late");
    }
    text
}

fn is_running(rank: &Activity) -> bool {
    matches!(rank.state, RankActivity::Running | RankActivity::Behind)
}

/// At most `height` lines of at most `width` columns: the summary, and all ranks if there is room; otherwise the running ones that have
/// been without a call for longest, or wait least, then those that wait most.
pub fn lines(ranks: &[Activity], elapsed: Duration, width: usize, height: usize) -> Vec<String> {
    let mut lines = wrapped(&summary(ranks, elapsed), width);
    if !ranks.is_empty() {
        lines.push(row("rank", "messages/s", "bytes/s", ["MPI", "wait"], "phase", "last call"));
        let room = height.saturating_sub(lines.len());
        if ranks.len() <= room {
            lines.extend(ranks.iter().map(of_rank));
        } else {
            lines.extend(extremes(ranks, room));
        }
    }
    lines.truncate(height.max(1));
    lines.iter_mut().for_each(|line| *line = cut(line, width));
    lines
}

fn extremes(ranks: &[Activity], room: usize) -> Vec<String> {
    let waiting = |rank: &Activity| rank.shares.map_or(0.0, |shares| shares.waiting);
    let quiet = |rank: &Activity| if rank.quiet >= QUIET { rank.quiet.as_secs() } else { 0 };
    let mut sorted: Vec<&Activity> = ranks.iter().filter(|rank| rank.state != RankActivity::Over).collect();
    sorted.sort_by(|a, b| quiet(b).cmp(&quiet(a)).then(waiting(a).total_cmp(&waiting(b))));
    let shown = room.saturating_sub(1).min(sorted.len());
    let (least, most) = (shown.div_ceil(2), shown / 2);
    let left = ranks.len() - shown;
    let between = format!("{:>6} {left} more ranks, ordered by time without a call, then by wait", "…");
    let first = sorted[..least].iter().map(|rank| of_rank(rank));
    first.chain([between]).chain(sorted[sorted.len() - most..].iter().map(|rank| of_rank(rank))).collect()
}

fn of_rank(rank: &Activity) -> String {
    let number = rank.rank.to_string();
    let without_rates = |what: &str| row(&number, "", "", ["", ""], "", what);
    match rank.state {
        RankActivity::NotYet => without_rates("not yet in the capture"),
        RankActivity::Over => without_rates("has finished"),
        RankActivity::Unreadable => without_rates("its file cannot be read"),
        RankActivity::Running | RankActivity::Behind => {
            let shares = rank.shares.map_or(["-".to_owned(), "-".to_owned()], |shares| {
                [percent(shares.mpi), percent(shares.waiting)]
            });
            let mut last = rank.last_call.clone().unwrap_or_default();
            if rank.quiet >= QUIET {
                last = format!("{} s ago: {last}", rank.quiet.as_secs());
            }
            let phase = Printable(rank.phase.as_deref().unwrap_or("")).to_string();
            let (messages, bytes) = (Grouped(rank.messages.round() as u64), Bytes(rank.bytes.round() as u64));
            let [mpi, waiting] = &shares;
            row(&number, &messages.to_string(), &bytes.to_string(), [mpi, waiting], &phase, &last)
        }
    }
}

fn row(
    rank: &str,
    messages: &str,
    bytes: &str,
    [mpi, waiting]: [&str; 2],
    phase: &str,
    last: &str,
) -> String {
    let phase = cut(phase, 14);
    format!("{rank:>6} {messages:>10} {bytes:>10} {mpi:>5} {waiting:>5} {phase:<14} {last}")
        .trim_end()
        .to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A text in lines, which end behind commas.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.trim_end().chars().count() <= width => {
                line.push_str(part)
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// The beginning of a text, if it has more than `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Shares;
    use super::*;
    use vef_format::ids::Rank;

    fn rank(number: u32, waiting: f64) -> Activity {
        Activity {
            rank: Rank(number),
            state: RankActivity::Running,
            messages: 1000.0,
            bytes: 5e6,
            shares: Some(Shares { mpi: waiting, waiting }),
            phase: Some("solve the equations\u{1b}[2J".into()),
            last_call: Some("MPI_Neighbor_alltoallv_init".into()),
            quiet: Duration::ZERO,
        }
    }

    #[test]
    fn a_thousand_ranks_fit_into_an_ordinary_terminal() {
        let mut ranks: Vec<Activity> =
            (0..1000).map(|number| rank(number, f64::from(number) / 1000.0)).collect();
        ranks[500].quiet = Duration::from_secs(30);
        ranks[7].state = RankActivity::Over;
        let shown = lines(&ranks, Duration::from_secs(61), 80, 24);
        assert_eq!(shown.len(), 24);
        assert!(
            shown.iter().all(|line| line.chars().count() <= 80 && !line.contains('\u{1b}')),
            "{shown:#?}"
        );
        assert_eq!(
            shown[..2],
            [
                "61 s: 999/1000 ranks, 999 000 messages/s, 4.995 GB/s, waiting 50 % (0 to 100),",
                "1 without a call for 2 s"
            ]
        );
        // The one without a call, then those that wait least.
        assert!(shown[3].starts_with("   500 ") && shown[3].contains("30 s ago: MPI_"), "{}", shown[3]);
        assert!(shown[4].starts_with("     0 "), "{}", shown[4]);
        assert!(shown[13].contains("980 more ranks"), "{shown:#?}");
        assert!(shown[23].starts_with("   999 "), "{shown:#?}");
        for height in 0..30 {
            let shown = lines(&ranks, Duration::ZERO, 30, height);
            assert!(shown.len() <= height.max(1), "{height}");
        }
    }

    #[test]
    fn few_ranks_are_shown_in_order() {
        let mut ranks: Vec<Activity> = (0..3).map(|number| rank(number, 0.25)).collect();
        ranks[1].shares = None;
        ranks[2].state = RankActivity::NotYet;
        let shown = lines(&ranks, Duration::from_secs(1), 100, 24);
        assert_eq!(shown.len(), 5);
        let expected = "     0      1 000   5.000 MB  25 %  25 % solve the equ… MPI_Neighbor_alltoallv_init";
        assert_eq!(shown[2], expected);
        assert!(shown[3].contains("   -     - "), "{}", shown[3]);
        assert!(shown[4].ends_with("not yet in the capture"), "{}", shown[4]);
        assert_eq!(lines(&[], Duration::ZERO, 80, 24), ["0 s: no rank has returned from MPI_Init"]);
    }
}
