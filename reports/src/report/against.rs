//! The comparison of a report with another.

use super::model::{Against, Difference, Report};
use super::parts::{Cell, figure, table};
use super::shown::{bytes, count, time};
use crate::exact::Exact;
use maud::{Markup, html};

impl Report {
    /// Compares with another trace's report.
    pub fn compare(&mut self, other: &Self) {
        let row = |measure: &'static str, of: &dyn Fn(&Self) -> Option<Exact>| {
            let (this, other) = (of(self)?, of(other)?);
            let change = (other.0 > 0).then(|| (this.0 as f64 - other.0 as f64) / other.0 as f64);
            Some(Difference { measure, this, other, change })
        };
        let replayed = |of: fn(&super::replayed::Replayed) -> Exact| {
            move |report: &Self| report.replayed.as_ref().map(of)
        };
        let differences = [
            row("ranks", &|report| Some(Exact(report.head.ranks.into()))),
            row("records", &|report| Some(report.totals.records)),
            row("messages", &|report| Some(report.totals.messages)),
            row("bytes", &|report| Some(report.totals.bytes)),
            row("collectives", &|report| Some(report.totals.collectives)),
            row("communicators", &|report| Some(report.totals.communicators)),
            row("pairs", &|report| report.pairs.different.map(Exact::from)),
            row("mean_size", &|report| Some(report.sizes.mean)),
            row("median_size", &|report| Some(report.sizes.p50)),
            row("computing_ps", &|report| Some(report.totals.computing_ps)),
            row("computing_max_ps", &|report| Some(report.totals.computing_max_ps)),
            row("runtime_ps", &replayed(|replayed| replayed.runtime_ps)),
            row("ideal_runtime_ps", &replayed(|replayed| replayed.ideal_runtime_ps)),
        ];
        let differences = differences.into_iter().flatten().collect();
        self.against = Some(Against {
            head: other.head.clone(),
            differences,
            sizes: other.sizes.classes.clone(),
            operations: other.collectives.operations.clone(),
        });
    }
}

pub(super) fn section(against: &Against) -> Markup {
    let row = |difference: &Difference| {
        let (name, shown): (&str, fn(Exact) -> String) = match difference.measure {
            "bytes" => ("bytes", bytes),
            "mean_size" => ("mean size", bytes),
            "median_size" => ("median size", bytes),
            "computing_ps" => ("computing, all ranks", time),
            "computing_max_ps" => ("computing, rank with most", time),
            "runtime_ps" => ("replayed run time", time),
            "ideal_runtime_ps" => ("run time on an ideal network", time),
            "pairs" => ("pairs of ranks", count),
            other => (other, count),
        };
        let words = difference.change.map_or_else(|| "–".to_owned(), compared);
        vec![
            Cell::text(name),
            Cell::shown(difference.this, shown),
            Cell::shown(difference.other, shown),
            Cell::number(difference.change.unwrap_or_default(), words),
        ]
    };
    let title = against.head.command.as_deref().unwrap_or(&against.head.file);
    html! {
        p { "Compared with " strong { (title) } " (" (against.head.file) ")." }
        (table(&["measure", "this", "the other", "this is"], against.differences.iter().map(row).collect(), 0))
        (figure("against-sizes", "Messages by powers of two of their size: this one filled, the other a line."))
    }
}

/// A change as a share of the other value in words, as a multiple or a part of it from a factor of ten on.
fn compared(change: f64) -> String {
    let ratio = 1.0 + change;
    match ratio {
        1.0 => "equal".to_owned(),
        10.0.. => format!("{ratio:.0} times as much"),
        1.0.. => format!("{:.1} % more", 100.0 * change),
        ..=0.0 => "nothing".to_owned(),
        ..0.1 => format!("1/{:.0} of it", 1.0 / ratio),
        _ => format!("{:.1} % less", -100.0 * change),
    }
}

#[cfg(test)]
mod tests {
    use super::compared;

    #[test]
    fn changes_are_told_as_people_do() {
        let change = |this: f64, other: f64| compared((this - other) / other);
        assert_eq!(change(7.0, 7.0), "equal");
        assert_eq!(change(9.0, 8.0), "12.5 % more");
        assert_eq!(change(4096.0, 4.0), "1024 times as much");
        assert_eq!(change(6.0, 8.0), "25.0 % less");
        assert_eq!(change(4.0, 4096.0), "1/1024 of it");
        assert_eq!(change(0.0, 3.0), "nothing");
    }
}
