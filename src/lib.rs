//! Orbit.
pub mod auth;
pub mod catalogue;
pub mod config;
pub mod domain;
pub mod error;
pub mod store;
pub mod task;
