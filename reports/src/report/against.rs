//! The comparison of a report with another.

use super::model::Report;
use super::parts::figure;
use maud::{Markup, html};
use results::Exact;
use results::report::{Against, Difference, Replayed, Sizes};
use results::table::{Cell, Table};
use vef_format::units::Grouped;

impl Report {
    /// Compares with another trace's report.
    pub fn compare(&mut self, other: &Self) {
        let row = |measure: &'static str, of: &dyn Fn(&Self) -> Option<Exact>| {
            let (this, other) = (of(self)?, of(other)?);
            let less = this < other;
            let change = (other.0 > 0).then(|| this.0.abs_diff(other.0) as f64 / other.0 as f64);
            let change = change.map(|change| if less { -change } else { change });
            Some(Difference { measure: measure.to_owned(), this, other, change })
        };
        let replayed =
            |of: fn(&Replayed) -> Exact| move |report: &Self| report.data.replayed.as_ref().map(of);
        // Nothing has no mean.
        let size = |of: fn(&Sizes) -> Exact| {
            move |report: &Self| (report.data.totals.messages.0 > 0).then(|| of(&report.data.sizes))
        };
        let differences = [
            row("ranks", &|report| Some(Exact(report.data.head.ranks.into()))),
            row("records", &|report| Some(report.data.totals.records)),
            row("messages", &|report| Some(report.data.totals.messages)),
            row("bytes", &|report| Some(report.data.totals.bytes)),
            row("collectives", &|report| Some(report.data.totals.collectives)),
            row("communicators", &|report| Some(report.data.totals.communicators)),
            row("pairs", &|report| report.data.pairs.different.map(Exact::from)),
            row("mean_size", &size(|sizes| sizes.mean)),
            row("median_size", &size(|sizes| sizes.p50)),
            row("computing_ps", &|report| Some(report.data.totals.computing_ps)),
            row("computing_max_ps", &|report| Some(report.data.totals.computing_max_ps)),
            row("runtime_ps", &replayed(|replayed| replayed.runtime_ps)),
            row("ideal_runtime_ps", &replayed(|replayed| replayed.ideal_runtime_ps)),
        ];
        let differences = differences.into_iter().flatten().collect();
        self.data.against = Some(Against {
            head: other.data.head.clone(),
            differences,
            sizes: other.data.sizes.classes.clone(),
            operations: other.data.collectives.operations.clone(),
        });
    }
}

/// The name of a measure, and the cells of its values.
fn measure(name: &str) -> (&str, fn(u128) -> Cell) {
    match name {
        "bytes" => ("bytes", Cell::Bytes),
        "mean_size" => ("mean size", Cell::Bytes),
        "median_size" => ("median size", Cell::Bytes),
        "computing_ps" => ("computing, all ranks", Cell::Time),
        "computing_max_ps" => ("computing, rank with most", Cell::Time),
        "runtime_ps" => ("replayed run time", Cell::Time),
        "ideal_runtime_ps" => ("run time on an ideal network", Cell::Time),
        "pairs" => ("pairs of ranks", Cell::Count),
        other => (other, Cell::Count),
    }
}

/// The measures of both.
pub(super) fn table(against: &Against) -> Table {
    let heads = ["measure", "this", "the other", "this is"];
    let mut table = Table::of_heads("against", "Comparison", &heads);
    for &Difference { measure: ref name, this, other, change } in &against.differences {
        let (name, cell) = measure(name);
        let change = Cell::Worded(change.unwrap_or_default(), compared(this, other));
        table.row([Cell::text(name), cell(this.0), cell(other.0), change]);
    }
    table
}

pub(super) fn section(against: &Against) -> Markup {
    let title = against.head.command.as_deref().unwrap_or(&against.head.file);
    html! {
        p { "Compared with " strong { (title) } " (" (against.head.file) ")." }
        (table(against).to_html(None))
        (figure("against-sizes", "Messages by powers of two of their size: this one filled, the other a line."))
    }
}

/// What a value is of another one, in words: a multiple or a part of it from a factor of ten on.
fn compared(this: Exact, other: Exact) -> String {
    let (this, other) = (this.0, other.0);
    let word = if this > other { "more" } else { "less" };
    let ratio = || {
        let (less, more) = (this.min(other), this.max(other));
        more.saturating_add(less / 2) / less
    };
    let change = || 100.0 * this.abs_diff(other) as f64 / other as f64;
    match (this, other) {
        _ if this == other => "equal".to_owned(),
        (0, _) => "nothing".to_owned(),
        (_, 0) => "–".to_owned(),
        _ if this / other >= 10 => format!("{} times as much", Grouped(ratio())),
        _ if other / this >= 10 => format!("1/{} of it", Grouped(ratio())),
        _ if change() < 0.05 => format!("less than 0.1 % {word}"),
        _ => format!("{:.1} % {word}", change()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Exact, compared};

    #[test]
    fn changes_are_told_as_people_do() {
        let change = |this: u128, other: u128| compared(Exact(this), Exact(other));
        assert_eq!(change(7, 7), "equal");
        assert_eq!(change(9, 8), "12.5 % more");
        assert_eq!(change(4096, 4), "1 024 times as much");
        assert_eq!(change(6, 8), "25.0 % less");
        assert_eq!(change(4, 4096), "1/1 024 of it");
        assert_eq!(change(0, 3), "nothing");
        assert_eq!((change(3, 0), change(0, 0)), ("–".to_owned(), "equal".to_owned()));
        // What a double does not tell from equal, or from nothing.
        let most = u128::from(u64::MAX);
        assert_eq!(change(most - 1, most), "less than 0.1 % less");
        assert_eq!(change(1_000_001, 1_000_000), "less than 0.1 % more");
        assert_eq!(change(1, most * most), "1/340 282 366 920 938 463 426 481 119 284 349 108 225 of it");
    }
}
