//! Placeholder until the gateway of the tests is here.
