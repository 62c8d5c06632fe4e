//! CSV: RFC 4180 with `\n`.

use super::{Cell, Table};

impl Table {
    /// A row of names, then all rows; fields with a comma, a quote or a line's end are quoted.
    pub fn to_csv(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_ref()).collect();
        let mut out = names.join(",");
        out.push('\n');
        for row in self.rows() {
            let fields: Vec<String> = row.iter().map(field).collect();
            out.push_str(&fields.join(","));
            out.push('\n');
        }
        out
    }
}

fn field(cell: &Cell) -> String {
    let value = cell.value();
    match cell.is_text() && value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let columns = [("function", ""), ("records", ""), ("share", "")];
        let mut table = Table::new("calls", "", columns.map(|(name, head)| Column::new(name, head)));
        table.row([Cell::text("MPI_Send"), Cell::count(1u64), Cell::Share(0.5)]);
        table.row([Cell::text("a,\"b\"\n"), Cell::count(u64::MAX), Cell::Missing]);
        let text = "function,records,share\nMPI_Send,1,0.5\n\"a,\"\"b\"\"\n\",18446744073709551615,\n";
        assert_eq!(table.to_csv(), text);
    }
}
