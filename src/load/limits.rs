//! The operating system's limit of open files: every connection is one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that a process has open besides its connections, with room to spare.
const OTHER_FILES: u64 = 256;

/// Raises the limit of open files as far as the system lets us, and returns it.
#[must_use]
pub fn raise_open_files() -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { hard } else { soft }
}

/// How many connections may be open at once if each one takes `files_each` of this process: one for a client, two if
/// the server runs in the same process.
#[must_use]
pub fn connections_max(open_files: u64, files_each: u64) -> usize {
    usize::try_from(open_files.saturating_sub(OTHER_FILES) / files_each.max(1)).unwrap_or(usize::MAX).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_within_one_process_takes_two_files() {
        assert_eq!(connections_max(20_256, 1), 20_000);
        assert_eq!(connections_max(20_256, 2), 10_000);
        assert_eq!(connections_max(0, 2), 16);
        assert!(raise_open_files() >= 64);
    }
}
