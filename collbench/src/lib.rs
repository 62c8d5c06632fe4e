//! Times real collectives, calibrates simulators, checks them.
