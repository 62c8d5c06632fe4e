//! Tables: described once, written as text, CSV or HTML.

mod csv;
mod html;
mod text;

pub use text::{TextStyle, width};

use crate::shown;
use std::borrow::Cow;

/// A table: columns with a name, a head and a meaning, and rows of typed cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of its file, and on the command line.
    pub name: &'static str,
    /// Heading for people.
    pub title: String,
    /// Number of rows, if more than this table has.
    pub all: u64,
    columns: Vec<Column>,
    /// Row by row.
    cells: Vec<Cell>,
    /// Columns of which text shows the greatest value as a bar.
    bars: &'static [usize],
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name with unit, for programs: `bytes`, `time_ps`.
    pub name: Cow<'static, str>,
    /// Head for people.
    pub head: Cow<'static, str>,
    /// Explanation; empty where the head says it.
    pub meaning: &'static str,
}

/// A cell: its type says how people see it; programs get the plain value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number that identifies something, such as a rank.
    Id(u64),
    /// A number of things, shown in groups of three digits.
    Count(u128),
    /// An amount of data, shown with a unit that fits.
    Bytes(u128),
    /// Picoseconds, shown with a unit that fits.
    Time(u128),
    /// A share from 0 to 1, shown in per cent.
    Share(f64),
    /// A number without a unit, and its decimals for people.
    Real(f64, usize),
    /// A number that people see in words.
    Worded(f64, String),
    /// A value that is unknown or does not exist.
    Missing,
}

impl Column {
    /// A column without an explanation.
    pub const fn new(name: &'static str, head: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), head: Cow::Borrowed(head), meaning: "" }
    }

    /// Adds an explanation.
    pub const fn means(mut self, meaning: &'static str) -> Self {
        self.meaning = meaning;
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(name: &'static str, title: impl Into<String>, columns: impl Into<Vec<Column>>) -> Self {
        Self { name, title: title.into(), all: 0, columns: columns.into(), cells: Vec::new(), bars: &[] }
    }

    /// A table without rows whose columns have their heads for names.
    pub fn of_heads(name: &'static str, title: impl Into<String>, heads: &[&'static str]) -> Self {
        Self::new(name, title, heads.iter().map(|head| Column::new(head, head)).collect::<Vec<_>>())
    }

    /// A table of names and values, without heads.
    pub fn facts(name: &'static str, title: impl Into<String>) -> Self {
        Self::new(name, title, [Column::new("name", ""), Column::new("value", "")])
    }

    /// Shows the greatest value of these columns as a bar behind each row of text.
    pub fn with_bars(self, columns: &'static [usize]) -> Self {
        Self { bars: columns, ..self }
    }

    /// The same rows with the columns of these names alone, in their order, for where all of them have no room.
    pub fn only(&self, names: &[&str]) -> Self {
        let at = |name: &&str| self.columns.iter().position(|column| column.name == *name);
        let chosen: Vec<usize> = names.iter().filter_map(at).collect();
        debug_assert_eq!(chosen.len(), names.len(), "{}: {names:?}", self.name);
        let columns: Vec<Column> = chosen.iter().map(|&at| self.columns[at].clone()).collect();
        let cells = self.rows().flat_map(|row| chosen.iter().map(|&at| row[at].clone())).collect();
        Self { columns, cells, title: self.title.clone(), bars: &[], ..*self }
    }

    /// Adds a row, of as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.cells.extend(cells);
        debug_assert_eq!(self.cells.len() % self.columns.len(), 0, "{}: a row of another length", self.name);
        self.all = self.all.max(self.len() as u64);
    }

    /// Adds a name and its value.
    pub fn fact(&mut self, name: &str, value: Cell) {
        self.row([Cell::Text(name.to_owned()), value]);
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[Cell]> {
        self.cells.chunks(self.columns.len())
    }

    /// Number of rows that it has.
    pub fn len(&self) -> usize {
        self.cells.len() / self.columns.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

impl Cell {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number of things.
    pub fn count(count: impl Into<u128>) -> Self {
        Self::Count(count.into())
    }

    /// A cell of what is there, else [`Cell::Missing`].
    pub fn maybe<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Missing, cell)
    }

    /// The text that people see.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Worded(_, text) => text.clone(),
            Self::Id(id) => id.to_string(),
            Self::Count(count) => shown::count(*count),
            Self::Bytes(bytes) => shown::bytes(*bytes),
            Self::Time(picos) => shown::time(*picos),
            Self::Share(share) => shown::percent(*share),
            Self::Real(value, decimals) => format!("{value:.decimals$}"),
            Self::Missing => "–".to_owned(),
        }
    }

    /// The plain value; empty if it is missing.
    pub fn value(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Id(id) => id.to_string(),
            Self::Count(value) | Self::Bytes(value) | Self::Time(value) => value.to_string(),
            Self::Share(value) | Self::Real(value, _) | Self::Worded(value, _) => value.to_string(),
            Self::Missing => String::new(),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}
