//! Tables from TOML. Every error says where: line and column, 1-based.

use super::{Rule, Table};
use crate::{Algorithm, Operation};
use std::collections::BTreeMap;
use toml::Spanned;

/// What is wrong with a table's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Not TOML, or not a table of rules.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
        /// What the reader of TOML says.
        message: String,
    },
    /// The operation has no such algorithm.
    #[error("line {line}, column {column}: {} has no algorithm '{algorithm}'; it has {}", .operation.key(), names(*.operation))]
    NoSuchAlgorithm {
        /// Line of the rule.
        line: usize,
        /// Column of the rule.
        column: usize,
        /// The operation.
        operation: Operation,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// A rule whose lower bound is above its upper bound.
    #[error("line {line}, column {column}: a rule that never holds: min_{what} is above max_{what}")]
    NeverHolds {
        /// Line of the rule.
        line: usize,
        /// Column of the rule.
        column: usize,
        /// `ranks`, `bytes` or `total`.
        what: &'static str,
    },
}

fn names(operation: Operation) -> String {
    Algorithm::of(operation).map(Algorithm::name).collect::<Vec<_>>().join(", ")
}

impl Table {
    /// Reads a table. Operations that it does not name are left to [`super::fallback`].
    pub fn from_toml(text: &str) -> Result<Table, TableError> {
        let parsed: BTreeMap<Operation, Vec<Spanned<Rule>>> = toml::from_str(text).map_err(|error| {
            let (line, column) = place(text, error.span().map_or(0, |span| span.start));
            TableError::Syntax { line, column, message: error.message().to_owned() }
        })?;
        let mut rules = vec![Vec::new(); Operation::ALL.len()];
        for (operation, list) in parsed {
            for rule in list {
                let start = rule.span().start;
                let rule = rule.into_inner();
                // Where it stands is looked for only if that is to be told: every replay reads a table.
                check(operation, &rule, || place(text, start))?;
                rules[operation as usize].push(rule);
            }
        }
        Ok(Table { rules })
    }
}

fn check(
    operation: Operation,
    rule: &Rule,
    place: impl FnOnce() -> (usize, usize),
) -> Result<(), TableError> {
    let algorithm = rule.algorithm;
    if !Algorithm::of(operation).any(|known| known == algorithm) {
        let (line, column) = place();
        return Err(TableError::NoSuchAlgorithm { line, column, operation, algorithm });
    }
    let bounds = [
        ("ranks", rule.min_ranks.into(), rule.max_ranks.into()),
        ("bytes", rule.min_bytes, rule.max_bytes),
        ("total", rule.min_total, rule.max_total),
    ];
    match bounds.into_iter().find(|&(_, min, max): &(_, u64, u64)| min > max) {
        Some((what, ..)) => {
            let (line, column) = place();
            Err(TableError::NeverHolds { line, column, what })
        }
        None => Ok(()),
    }
}

/// Line and column of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_ship_are_read_and_name_every_operation() {
        for name in Table::BUILTIN {
            let table = Table::builtin(name).unwrap_or_else(|| panic!("{name}"));
            for (operation, rules) in Operation::ALL.iter().zip(&table.rules) {
                assert!(!rules.is_empty(), "{name} has no rule for {operation}");
            }
        }
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| Table::from_toml(text).unwrap_err().to_string();
        assert_eq!(
            error("bcast = [\n  { algorithm = \"bruck\" },\n]"),
            "line 2, column 3: bcast has no algorithm 'bruck'; it has nothing, linear, binomial, binomial-spread, \
             knomial, chain, binary, split-binary, scatter-ring, scatter-doubling"
        );
        assert_eq!(
            error(
                "scan = [{ algorithm = \"linear\" }]\nbarrier = [{ min_ranks = 9, max_ranks = 8, algorithm = \"linear\" }]"
            ),
            "line 2, column 12: a rule that never holds: min_ranks is above max_ranks"
        );
        assert!(error("bcast = [\n\n  { algorithm = \"magic\" }]").starts_with("line 3, column "));
        assert!(error("bcast = [{ algorithm = \"linear\", colour = 3 }]").starts_with("line 1, column "));
        assert!(error("broadcast = []").starts_with("line 1, column "));
        assert!(error("bcast = [").starts_with("line 1, column "));
    }
}
