//! Rules about the code itself. A list of exceptions may only shrink.

mod functions;
mod imports;
mod settings;
mod wire;

use std::path::{Path, PathBuf};

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file with this ending below a folder: its path from the root, and its text.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    visit(&root().join(folder), ending, &mut found);
    found.sort();
    assert!(!found.is_empty(), "no {ending} below {folder}");
    found
}

fn visit(folder: &Path, ending: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The part of a source file that is not its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}
