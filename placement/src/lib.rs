//! Which rank sits on which node, as the launcher would do it.
