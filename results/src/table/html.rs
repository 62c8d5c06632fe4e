//! Tables of a page, which its script sorts by their heads.

use super::{Cell, Table};
use maud::{Markup, html};
use vef_format::units::Grouped;

/// Most rows of a table on a page.
const ROWS: usize = 50;

impl Table {
    /// At most fifty rows; `others` says where the others are, if that is to be said.
    pub fn to_html(&self, others: Option<Markup>) -> Markup {
        let first = self.rows().next().unwrap_or_default();
        let is_text = |at: usize| first.get(at).is_some_and(Cell::is_text);
        let shown = self.len().min(ROWS) as u64;
        let sortable = shown > 1;
        html! {
            div .scroll { table {
                thead { tr { @for (at, column) in self.columns.iter().enumerate() {
                    th .text[is_text(at)] scope="col" title=[(!column.meaning.is_empty()).then_some(column.meaning)] {
                        @if sortable && !column.head.is_empty() { button type="button" { (column.head) } } @else { (column.head) }
                    }
                } } }
                tbody { @for row in self.rows().take(ROWS) { tr { @for cell in row { (of_cell(cell)) } } } }
            } }
            @if self.all > shown {
                p .small { (Grouped(shown)) " of " (Grouped(self.all)) @if let Some(others) = others { "; " (others) } "." }
            }
        }
    }

    /// A tile for each name and value of [`Table::facts`].
    pub fn to_tiles(&self) -> Markup {
        html! {
            div .tiles { @for row in self.rows() { div .tile { b { (row[1].shown()) } span { (row[0].shown()) } } } }
        }
    }
}

fn of_cell(cell: &Cell) -> Markup {
    let (value, shown) = (cell.value(), cell.shown());
    html! { td .text[cell.is_text()] data-value=[(value != shown).then_some(value)] { (shown) } }
}
