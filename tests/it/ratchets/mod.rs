//! Rules about the code itself. Each list of exceptions may only shrink.
