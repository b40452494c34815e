//! Orbit.
