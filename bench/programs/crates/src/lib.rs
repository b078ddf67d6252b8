//! Nothing of its own: what it depends on is the work.
