//! Building blocks of the page: sortable tables, places for figures, tiles with a number and its name.

use maud::{Markup, html};
use results::Exact;
use results::report::Amount;
use vef_format::units::Grouped;

/// Rows of a table on the page, at most; the data has more.
const ROWS: usize = 50;

/// A cell of a table: the value that it is sorted by, and the text shown.
pub(super) struct Cell {
    value: String,
    shown: String,
    text: bool,
}

impl Cell {
    pub(super) fn text(text: &str) -> Self {
        Self { value: text.to_owned(), shown: text.to_owned(), text: true }
    }

    /// A number that identifies something (a rank).
    pub(super) fn plain(number: u32) -> Self {
        Self { value: number.to_string(), shown: number.to_string(), text: false }
    }

    pub(super) fn count(number: impl ToString) -> Self {
        let value = number.to_string();
        Self { shown: Grouped(&value).to_string(), value, text: false }
    }

    /// A number with its unit.
    pub(super) fn shown(number: Exact, shown: fn(Exact) -> String) -> Self {
        Self { value: number.to_string(), shown: shown(number), text: false }
    }

    /// A number without a unit.
    pub(super) fn number(value: f64, shown: String) -> Self {
        Self { value: value.to_string(), shown, text: false }
    }

    /// A share, if there is one.
    pub(super) fn maybe_share(share: Option<f64>) -> Self {
        Self::number(share.unwrap_or(0.0), share.map_or_else(|| "–".to_owned(), percent))
    }

    pub(super) fn amount(amount: &Amount) -> [Self; 2] {
        [Self::count(amount.messages.0), Self::count(amount.bytes.0)]
    }
}

/// A table that can be sorted by its heads.
pub(super) fn table(heads: &[&str], rows: Vec<Vec<Cell>>) -> Markup {
    let all = rows.len();
    table_of(heads, rows, all, "")
}

/// The same of a table that has `all` rows in the file `csv`.
pub(super) fn table_of(heads: &[&str], rows: Vec<Vec<Cell>>, all: usize, csv: &str) -> Markup {
    let texts: Vec<bool> = rows.first().map_or(Vec::new(), |row| row.iter().map(|cell| cell.text).collect());
    let sortable = rows.len() > 1;
    let shown = rows.len().min(ROWS);
    html! {
        div .scroll { table {
            thead { tr { @for (at, head) in heads.iter().enumerate() {
                th .text[texts.get(at) == Some(&true)] scope="col" {
                    @if sortable && !head.is_empty() { button type="button" { (head) } } @else { (head) }
                }
            } } }
            tbody { @for row in rows.into_iter().take(ROWS) { tr {
                @for cell in row { td .text[cell.text] data-value=[(cell.value != cell.shown).then_some(cell.value)] { (cell.shown) } }
            } } }
        } }
        @if all > shown { p .small { (Grouped(shown)) " of " (Grouped(all)) @if !csv.is_empty() { "; " code { "vef report --format csv" } " writes all to " (csv) ".csv" } "." } }
    }
}

/// The place of a figure, with its caption.
pub(super) fn figure(name: &str, caption: &str) -> Markup {
    explorable_figure(name, caption, "")
}

/// A sentence for figures in which a row is the mean of several ranks; empty for others.
pub(super) fn mean_of(ranks_per_row: u64) -> String {
    match ranks_per_row {
        0..2 => String::new(),
        ranks => format!(" Groups of {} neighbouring ranks are shown by their mean.", Grouped(ranks)),
    }
}

/// Says how many of all a figure shows, unless all.
pub(super) fn first_of(shown: usize, all: usize, which: &str) -> String {
    match all > shown {
        true => format!(" Of {} the {} {which}.", Grouped(all), Grouped(shown)),
        false => String::new(),
    }
}

/// A figure with a hint for those who have a pointer.
pub(super) fn explorable_figure(name: &str, caption: &str, hint: &str) -> Markup {
    html! {
        figure data-figure=(name) {
            div .choices {}
            div .picture {}
            output aria-live="polite" {}
            figcaption { (caption) @if !hint.is_empty() { span .no-print { " " (hint) } } }
        }
    }
}

pub(super) fn tile(value: &str, name: &str) -> Markup {
    html! { div .tile { b { (value) } span { (name) } } }
}

pub(super) fn share(share: f64, name: &str) -> Markup {
    let class = if share >= 0.8 { "tile good" } else { "tile poor" };
    html! { div class=(class) { b { (percent(share)) } span { (name) } } }
}

/// With one decimal; below one per cent with two digits, and as many decimals where only all would be 100 %.
pub(super) fn percent(share: f64) -> String {
    let decimals = |rest: f64| (-1.0 - rest.log10().floor()).min(6.0) as usize;
    let (percent, decimals) = match share {
        0.0 => (0.0, 1),
        0.0..0.01 => (100.0 * share, decimals(share)),
        0.9995..1.0 => ((100.0 * share).min(99.999_999), decimals(1.0 - share)),
        _ => (100.0 * share, 1),
    };
    format!("{percent:.decimals$} %")
}

/// A bandwidth.
pub(super) fn rate(bits_per_second: u64) -> String {
    let (factor, unit) = match bits_per_second {
        0..1_000_000 => (1e3, "kbit/s"),
        1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    format!("{} {unit}", bits_per_second as f64 / factor)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn small_shares_keep_two_digits_and_only_all_is_100() {
        let shares = [0.0, 1.0, 0.4329, 0.01, 0.0094, 0.00043, 1e-12];
        assert_eq!(
            shares.map(percent),
            ["0.0 %", "100.0 %", "43.3 %", "1.0 %", "0.94 %", "0.043 %", "0.000000 %"]
        );
        let nearly_all = [0.9994, 0.9995, 0.99964, 0.999_999_5, 1.0 - 1e-12, 1.0_f64.next_down(), 1.5];
        assert_eq!(
            nearly_all.map(percent),
            ["99.9 %", "99.950 %", "99.964 %", "99.999950 %", "99.999999 %", "99.999999 %", "150.0 %"]
        );
    }
}
