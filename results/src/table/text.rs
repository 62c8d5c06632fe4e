//! Aligned text for terminals and notes.

use super::{Cell, Table};
use vef_format::units::Grouped;

/// How a table is written as text.
#[derive(Clone, Copy, Debug)]
pub struct TextStyle {
    /// Most rows.
    pub top: usize,
    /// Whether values are also drawn as bars: where the terminal shows them.
    pub bars: bool,
    /// Where the rows beyond `top` are found: an option of the command.
    pub more: &'static str,
    /// In front of each line.
    pub indent: &'static str,
}

impl TextStyle {
    /// All rows, without bars.
    pub const WHOLE: Self = Self { top: usize::MAX, bars: false, more: "", indent: "" };
}

/// Characters of the widest column. Longer fields do not widen it; the formatter would panic above 65 535.
const WIDEST: usize = 255;

/// The width of a column with fields of these lengths, in characters.
pub fn width(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.filter(|&length| length <= WIDEST).max().unwrap_or(0)
}

/// Characters of the longest bar.
const BAR: usize = 24;

impl Table {
    /// A line of heads, unless all are empty, and a line for each row: text to the left, numbers to the right.
    pub fn to_text(&self, style: &TextStyle) -> String {
        let rows: Vec<&[Cell]> = self.rows().collect();
        let shown: Vec<Vec<String>> = rows
            .iter()
            .take(style.top)
            .map(|row| row.iter().map(|cell| on_one_line(cell.shown())).collect())
            .collect();
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_string()).collect();
        let is_text: Vec<bool> =
            (0..heads.len()).map(|at| rows.first().is_some_and(|row| row[at].is_text())).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|at| width(shown.iter().chain([&heads]).map(|row| row[at].chars().count())))
            .collect();
        let line = |fields: &[String], bar: &str| {
            let cells =
                fields.iter().zip(&widths).zip(&is_text).map(|((field, width), is_text)| match is_text {
                    true => format!("{field:<width$}"),
                    false => format!("{field:>width$}"),
                });
            let text = format!("{}{}  {bar}", style.indent, cells.collect::<Vec<_>>().join("  "));
            text.trim_end().to_owned() + "\n"
        };
        let mut out = String::new();
        if heads.iter().any(|head| !head.is_empty()) {
            out.push_str(&line(&heads, ""));
        }
        let values: Vec<f64> = rows.iter().map(|row| self.bar_value(row)).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        for (row, value) in shown.iter().zip(values) {
            let bar = if style.bars { bar(value, most) } else { String::new() };
            out.push_str(&line(row, &bar));
        }
        let more = self.all - shown.len() as u64;
        if more > 0 {
            out.push_str(&format!("{}… and {} more ({})\n", style.indent, Grouped(more), style.more));
        }
        out
    }

    fn bar_value(&self, row: &[Cell]) -> f64 {
        let value = |&at: &usize| row[at].value().parse().unwrap_or(0.0);
        self.bars.iter().map(value).fold(0.0, f64::max)
    }
}

/// A field that may have the name of anything: control characters are escaped, so that a row stays one.
fn on_one_line(field: String) -> String {
    match field.contains(char::is_control) {
        true => field
            .chars()
            .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() })
            .collect(),
        false => field,
    }
}

/// A bar as long as `value` is of `most`, to an eighth of a character.
fn bar(value: f64, most: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if most == 0.0 || value == 0.0 {
        return String::new();
    }
    let eighths = ((value / most * (8 * BAR) as f64).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn a_row_is_one_line_whatever_its_fields_are() {
        let mut table = Table::new("files", "", [Column::new("file", "file"), Column::new("calls", "calls")]);
        table.row([Cell::text("a\nb\r\u{1b}[31m"), Cell::count(1u64)]);
        assert_eq!(table.to_text(&TextStyle::WHOLE).lines().nth(1), Some("a\\nb\\r\\u{1b}[31m      1"));
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(10.0, 10.0), "█".repeat(BAR));
        assert_eq!(bar(5.0, 10.0), "█".repeat(BAR / 2));
        assert_eq!(
            (bar(0.0, 10.0), bar(1.0, 1_000_000.0), bar(0.0, 0.0)),
            (String::new(), "▏".to_owned(), String::new())
        );
    }

    #[test]
    fn a_field_of_any_length_is_shown() {
        let mut table = Table::new("links", "Links", [Column::new("link", "link"), Column::new("n", "n")]);
        let long = "x".repeat(70_000);
        table.row([Cell::text(&long), Cell::count(1u64)]);
        table.row([Cell::text("short"), Cell::count(2u64)]);
        let text = table.to_text(&TextStyle::WHOLE);
        assert!(text.contains(&long) && text.contains("short  2"), "{text:.200}");
    }

    #[test]
    fn columns_are_aligned_and_rows_left_out_are_counted() {
        let columns = [Column::new("size_bytes", "size"), Column::new("messages", "messages")];
        let mut table = Table::new("sizes", "Sizes", columns).with_bars(&[1]);
        table.row([Cell::Bytes(8), Cell::count(1000u64)]);
        table.row([Cell::Bytes(20_000), Cell::count(500u64)]);
        table.row([Cell::Missing, Cell::count(1u64)]);
        let text = table.to_text(&TextStyle { top: 2, bars: true, more: "--top", indent: "  " });
        let bars = ["█".repeat(24), "█".repeat(12)];
        let expected = [
            "       size  messages".to_owned(),
            format!("        8 B     1 000  {}", bars[0]),
            format!("  20.000 kB       500  {}", bars[1]),
            "  … and 1 more (--top)\n".to_owned(),
        ];
        assert_eq!(text, expected.join("\n"));
    }
}
