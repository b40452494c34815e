//! The simulator: seeded schedules run the production Lua and the production recovery logic, with faults.
