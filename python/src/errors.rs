//! Errors of the libraries as exceptions of `vef.errors`, by kind. Where in a file an error is, that module reads from the
//! message, which begins with it (`vef_format::error::Place`).

use pyo3::exceptions::{PyOverflowError, PyRuntimeError};
use pyo3::prelude::*;
use replay::{BuildError, LoadError, ReplayError, Stuck};
use std::any::Any;
use std::error::Error;
use vef_cli::embedded::UsageError;
use vef_format::capture::CaptureError;
use vef_format::container::ContainerError;
use vef_format::text::TextError;
use vef_format::trace::{CopyError, TraceError};

/// The exception for an error of a library.
pub(crate) fn exception(error: &(dyn Error + 'static)) -> PyErr {
    if let Some(ReplayError::Overflow { .. } | ReplayError::Arrival { .. }) = error.downcast_ref() {
        return PyOverflowError::new_err(error.to_string());
    }
    named(class(error), in_one_line(error))
}

/// The exception of this class of `vef.errors`.
pub(crate) fn named(class: &'static str, message: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("vef.errors")
            .and_then(|errors| errors.getattr("_located"))
            .and_then(|located| located.call1((class, &message)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// The exception for a replay in which nothing happens any more.
pub(crate) fn stuck(stuck: &Stuck) -> PyErr {
    named("StuckError", stuck.to_string())
}

/// The exception for a panic, with the advice to report it.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
    PyRuntimeError::new_err(format!("vef has a fault; please report it with what led to it: {text}"))
}

/// The class of `vef.errors` for an error, by the first of its causes that has one.
fn class(error: &(dyn Error + 'static)) -> &'static str {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<UsageError>() {
            return "OptionError";
        }
        if error.is::<CaptureError>() {
            return "CaptureError";
        }
        if error.is::<TextError>()
            || error.is::<ContainerError>()
            || error.is::<TraceError>()
            || error.is::<CopyError>()
            || error.is::<LoadError>()
        {
            return "TraceError";
        }
        match error.downcast_ref() {
            Some(ReplayError::Source(source)) => return class(&**source),
            Some(error) if error.is_misuse() || matches!(error, ReplayError::Ended) => return "MisuseError",
            Some(_) => return "ReplayError",
            None => {}
        }
        match error.downcast_ref() {
            Some(BuildError::Start(first)) => return class(first),
            Some(_) => return "ReplayError",
            None => {}
        }
        next = error.source();
    }
    "VefError"
}

/// The message, with those of its causes that it does not contain.
fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
