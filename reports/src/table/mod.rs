//! Tables with named columns, as CSV and as Parquet.

mod parquet;

use crate::exact::Exact;
use std::fmt::Write as _;

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it is called, as a file and on the command line.
    pub name: &'static str,
    /// Its columns, all of the same length.
    pub columns: Vec<Column>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, with the unit: `bytes`, `time_ps`.
    pub name: &'static str,
    /// What stands in it, row by row.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<Exact>),
    /// Any numbers.
    Real(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Column {
    /// A column of whole numbers.
    pub fn whole<N: Into<Exact>>(name: &'static str, values: impl IntoIterator<Item = N>) -> Self {
        Self { name, values: Values::Whole(values.into_iter().map(Into::into).collect()) }
    }

    /// A column of any numbers.
    pub fn real(name: &'static str, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name, values: Values::Real(values.into_iter().collect()) }
    }

    /// A column of text.
    pub fn text<S: Into<String>>(name: &'static str, values: impl IntoIterator<Item = S>) -> Self {
        Self { name, values: Values::Text(values.into_iter().map(Into::into).collect()) }
    }
}

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The table as CSV (RFC 4180 with `\n`): a header row, fields with a comma, a quote or a line's end in quotes.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        let names: Vec<&str> = self.columns.iter().map(|column| column.name).collect();
        out.push_str(&names.join(","));
        out.push('\n');
        for row in 0..self.rows() {
            for (number, column) in self.columns.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                // Writing to a string does not fail.
                let _ = match &column.values {
                    Values::Whole(values) => write!(out, "{}", values[row]),
                    Values::Real(values) => write!(out, "{}", values[row]),
                    Values::Text(values) => write!(out, "{}", quoted(&values[row])),
                };
            }
            out.push('\n');
        }
        out
    }
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let table = Table {
            name: "calls",
            columns: vec![
                Column::text("function", ["MPI_Send", "a,\"b\"\n"]),
                Column::whole("records", [1u64, u64::MAX]),
                Column::real("share", [0.5, 1.0]),
            ],
        };
        let text = "function,records,share\nMPI_Send,1,0.5\n\"a,\"\"b\"\"\n\",18446744073709551615,1\n";
        assert_eq!(table.to_csv(), text);
    }
}
