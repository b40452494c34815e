//! Where pictures are kept.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, eaccess};

use super::{Finding, within};
use crate::config::{self, MediaBackend};
use crate::error::Dependency;
use crate::store::media::Media;

const MIB: u64 = 1024 * 1024;
const FREE_BYTES_WARN: u64 = 1024 * MIB;
const FREE_BYTES_MIN: u64 = 100 * MIB;

pub(super) async fn examine(config: &config::Media) -> Vec<Finding> {
    match config.backend {
        MediaBackend::Filesystem => folder(&config.filesystem.dir),
        MediaBackend::S3 => vec![bucket(config).await],
    }
}

async fn bucket(config: &config::Media) -> Finding {
    const CHECK: &str = "media bucket";
    let name = format!("{} at {}", config.s3.bucket, config::address(&config.s3.endpoint.clone().into()));
    match within(Dependency::Media, "looking for the bucket", Media::connect(config)).await {
        Ok(_) => Finding::ok(CHECK, format!("{name} opens to our credentials")),
        Err(error) => {
            let found = format!("{name}: {}", error.chain());
            Finding::fail(
                CHECK,
                found,
                "correct media.s3, and permit HeadBucket, PutObject and DeleteObject to its key",
            )
        }
    }
}

/// The folder is not made here: whoever runs this may be another user than the service.
fn folder(dir: &Path) -> Vec<Finding> {
    const CHECK: &str = "media folder";
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let there = nearest_existing(&dir);
    let (name, place) = (dir.display(), there.display());
    let may = AccessFlags::W_OK | AccessFlags::X_OK;
    let finding = if !there.is_dir() {
        Finding::fail(CHECK, format!("{place} is not a folder"), "set media.filesystem.dir to another place")
    } else if let Err(error) = eaccess(&there, may) {
        let advice = "give the folder to the user that runs Orbit, or set media.filesystem.dir";
        Finding::fail(CHECK, format!("{place} cannot be written to: {error}"), advice)
    } else if there == dir {
        Finding::ok(CHECK, format!("{name} can be written to"))
    } else {
        Finding::ok(CHECK, format!("{name} will be made at the first start"))
    };
    vec![finding, disk(&there)]
}

fn nearest_existing(dir: &Path) -> PathBuf {
    dir.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_owned()
}

fn disk(folder: &Path) -> Finding {
    const CHECK: &str = "media disk";
    match statvfs(folder) {
        Ok(disk) => room(disk.blocks_available().saturating_mul(disk.fragment_size())),
        Err(error) => {
            let found = format!("{} does not tell its free space: {error}", folder.display());
            Finding::warn(CHECK, found, "look with df")
        }
    }
}

fn room(free_bytes: u64) -> Finding {
    const CHECK: &str = "media disk";
    let found = format!("{} MiB free", free_bytes / MIB);
    if free_bytes < FREE_BYTES_MIN {
        Finding::fail(CHECK, found, "make room: uploads fail")
    } else if free_bytes < FREE_BYTES_WARN {
        Finding::warn(CHECK, found, "make room before uploads fail")
    } else {
        Finding::ok(CHECK, found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_where_it_will_be_made() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/b");
        let found = folder(&dir).remove(0);
        assert_eq!(found.verdict, Verdict::Ok);
        assert!(found.found.contains("will be made"), "{found}");
        assert!(!dir.exists() && !temp.path().join("a").exists(), "looking makes nothing");

        std::fs::write(temp.path().join("a"), "no folder").unwrap();
        assert_eq!(folder(&dir).remove(0).verdict, Verdict::Fail);
    }

    #[test]
    fn little_room_is_said_before_it_is_none() {
        assert_eq!(room(FREE_BYTES_WARN).verdict, Verdict::Ok);
        assert_eq!(room(FREE_BYTES_WARN - 1).verdict, Verdict::Warn);
        assert_eq!(room(FREE_BYTES_MIN - 1).verdict, Verdict::Fail);
    }
}
