//! Reads and writes the traces of other tools. A format is a module and a line in the list of formats.
//!
//! Formats of calls (DUMPI, OTF2, liballprof, SimGrid's time-independent traces) become a capture, which the mixer converts like
//! one of our own. Formats of graphs (GOAL, Chakra) become the records of a trace.

#![forbid(unsafe_code)]
