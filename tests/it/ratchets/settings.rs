//! Every setting is documented where it has its default.

use orbit::config::DEFAULTS;

use super::{files, root};

#[test]
fn every_setting_has_a_comment_or_follows_one() {
    // A blank line or a section ends what a comment speaks of.
    let mut documented = false;
    let mut bare = Vec::new();
    let mut section = String::new();
    for line in DEFAULTS.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
            documented = false;
        } else if line.starts_with('#') {
            documented = true;
        } else if let Some((name, _)) = line.split_once(" =")
            && !documented
            && !speaks_for_itself(name)
        {
            bare.push(format!("{section}.{name}"));
        }
    }
    assert!(bare.is_empty(), "say what these do in configs/default.toml: {}", bare.join(", "));
}

/// An address, a name or a credential that the section's title explains.
fn speaks_for_itself(name: &str) -> bool {
    ["host", "port", "uri", "dir", "database", "endpoint", "region", "bucket", "access_key_id", "secret_access_key"]
        .contains(&name)
}

#[test]
fn every_configuration_file_parses() {
    for (file, text) in files("configs", "toml") {
        let layered = orbit::config::Config::with_layer(&text);
        assert!(layered.is_ok(), "{file}: {}", layered.unwrap_err());
    }
}

#[test]
fn the_root_stays_readable() {
    let known = [
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.lock",
        "Cargo.toml",
        "Dockerfile",
        "LICENSE",
        "Makefile",
        "README.md",
        "clippy.toml",
        "configs",
        "docker-compose.yml",
        "docs",
        "lua",
        "migrations",
        "openapi.yaml",
        "rustfmt.toml",
        "scripts",
        "src",
        "target",
        "tests",
    ];
    for entry in std::fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || known.contains(&name.as_str()), "{name} does not belong in the root");
    }
}
