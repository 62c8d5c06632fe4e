//! A network as lines of text is refused, or has routes between its nodes.
#![no_main]

vef_fuzz::target!(1024, |bytes| vef_fuzz::tools::network(bytes, "txt"));
