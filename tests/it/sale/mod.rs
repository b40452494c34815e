//! The live sale.

mod first;
