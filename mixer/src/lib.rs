//! Turns the captures of all ranks into one self-related VEF trace.
