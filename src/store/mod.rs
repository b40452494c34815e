//! The three stores. Siblings never import each other: where two of them meet is a use case's business, and there the
//! order of writes, and what a crash between them means, is written down.

pub mod live;
pub mod media;
pub mod mongo;
