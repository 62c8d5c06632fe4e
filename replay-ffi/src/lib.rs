//! The C ABI of the replay library.
