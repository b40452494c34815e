//! Secrets of the demo. They are made once and kept beside its data, which they protect: a second demo in the same
//! directory finds its accounts again.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use figment::Figment;
use figment::providers::{Format, Toml};
use serde::Deserialize;

/// What the demo must know again next time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secrets {
    pub jwt_secret: String,
    pub data_key: String,
    pub admin_password: String,
}

impl Secrets {
    /// Those of this directory; made if there are none.
    pub(super) fn of(dir: &Path) -> anyhow::Result<Self> {
        super::create_dir(dir)?;
        let file = dir.join("secrets.toml");
        if !file.exists() {
            create(&file).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Figment::from(Toml::file_exact(&file)).extract().map_err(|_| {
            // The error could quote a secret.
            anyhow::anyhow!("cannot read {}: delete {} and start again", file.display(), dir.display())
        })
    }
}

fn create(file: &Path) -> std::io::Result<()> {
    let text = format!(
        "# Made by `orbit demo` for the data in this directory. Not for production.\n\
         jwt_secret = \"{}\"\ndata_key = \"{}\"\nadmin_password = \"{}\"\n",
        STANDARD.encode(rand::random::<[u8; 48]>()),
        STANDARD.encode(rand::random::<[u8; 32]>()),
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 15]>()),
    );
    // Nobody else may read it, from the first byte on. Renamed when whole: an interruption leaves no half of it.
    let draft = file.with_extension("toml.new");
    let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(draft, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn secrets_are_made_once_and_are_for_the_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let first = Secrets::of(dir.path()).unwrap();
        let again = Secrets::of(dir.path()).unwrap();
        assert_eq!(first.jwt_secret, again.jwt_secret);
        assert!(first.jwt_secret.len() >= 32 && first.admin_password.len() >= 16);
        assert_eq!(STANDARD.decode(&first.data_key).unwrap().len(), 32);
        let mode = dir.path().join("secrets.toml").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(Secrets::of(other.path()).unwrap().jwt_secret, first.jwt_secret);
    }

    #[test]
    fn a_broken_file_says_what_to_do_and_tells_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secrets.toml"), "jwt_secret = \"hush\"").unwrap();
        let error = Secrets::of(dir.path()).err().unwrap().to_string();
        assert!(error.contains("delete") && !error.contains("hush"), "{error}");
    }
}
