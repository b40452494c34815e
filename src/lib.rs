//! Orbit.
pub mod auth;
pub mod config;
pub mod domain;
pub mod error;
pub mod store;
pub mod task;
