//! Functions and files that a reader can hold in the head.

use super::files;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;
/// Half of all files are shorter than this.
const FILE_LINES_MEDIAN_MAX: usize = 150;

/// (name, first line, lines) of each function, found by the indentation that rustfmt gives.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let signature = ["fn ", "pub fn ", "async fn ", "pub async fn ", "const fn ", "pub const fn "];
        let visible = code.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(code, |(_, rest)| rest);
        // A trait's method without a body ends where it begins.
        if !signature.iter().any(|prefix| visible.starts_with(prefix)) || code.ends_with(';') {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let Some(length) = lines[start..].iter().position(|line| *line == end) else { continue };
        let name = visible.split("fn ").nth(1).unwrap_or_default();
        let name = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        found.push((name, start + 1, length + 1));
    }
    found
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let mut long = Vec::new();
    let mut count = 0;
    for folder in ["src", "tests"] {
        for (file, text) in files(folder, "rs") {
            for (name, line, length) in functions(&text) {
                count += 1;
                if length > FUNCTION_LINES_MAX {
                    long.push(format!("{file}:{line} {name} has {length} lines"));
                }
            }
        }
    }
    assert!(count > 300, "only {count} functions were found: the search is broken");
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

#[test]
fn files_are_small() {
    let mut lengths: Vec<(usize, String)> =
        files("src", "rs").into_iter().map(|(file, text)| (text.lines().count(), file)).collect();
    lengths.sort();
    let (longest, file) = lengths.last().unwrap();
    assert!(*longest <= FILE_LINES_MAX, "{file} has {longest} lines; split it");
    let median = lengths[lengths.len() / 2].0;
    assert!(median <= FILE_LINES_MEDIAN_MAX, "half of all files have more than {median} lines");
}

#[test]
fn the_search_sees_a_long_function() {
    let text = format!("impl A {{\n    pub(super) async fn long() {{\n{}    }}\n}}\n", "        x();\n".repeat(80));
    assert_eq!(functions(&text), [("long".to_owned(), 2, 82)]);
}
