//! What each kind of call records. A hook is called by the wrapper of every function of its category, with the
//! arguments as they came and the real function; it is generic over the function's row and the language, so that
//! one hook serves all forms of all functions of its kind.

mod again;
mod collective;
mod communicators;
mod completion;
mod lifecycle;
mod other;
mod point_to_point;

pub(crate) use again::*;
pub(crate) use collective::*;
pub(crate) use communicators::*;
pub(crate) use completion::*;
pub(crate) use lifecycle::*;
pub(crate) use other::*;
pub(crate) use point_to_point::*;
