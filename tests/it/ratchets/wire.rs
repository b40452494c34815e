//! What clients see is written down, and the writing is kept true.

use std::collections::BTreeSet;

use orbit::error::Code;

use super::{files, root};

#[test]
fn openapi_yaml_is_up_to_date() {
    let checked_in = std::fs::read_to_string(root().join("openapi.yaml")).unwrap();
    let generated = orbit::http::openapi::yaml().unwrap();
    assert!(checked_in == generated, "run `cargo run --bin orbit -- openapi > openapi.yaml`");
}

/// Codes that no test outside can bring about.
const UNREACHABLE: &[Code] = &[Code::Internal];

#[test]
fn every_error_code_is_produced_by_a_test() {
    let tests: String = files("tests/it", "rs")
        .into_iter()
        .filter(|(file, _)| !file.contains("ratchets"))
        .map(|(_, text)| text)
        .collect();
    let missing: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| !UNREACHABLE.contains(code))
        .map(|code| code.as_str())
        .filter(|code| !tests.contains(&format!("\"{code}\"")))
        .collect();
    assert!(missing.is_empty(), "no test mentions {}", missing.join(", "));
}

#[test]
fn error_codes_are_distinct_and_snake_case() {
    let texts: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(texts.len(), Code::ALL.len());
    assert!(texts.iter().all(|text| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
}

#[test]
fn every_script_has_its_header_and_every_tag_is_decoded() {
    for (file, text) in files("lua", "lua") {
        for part in ["-- KEYS", "-- ARGV", "-- Returns an array of strings; the first is the tag:"] {
            assert!(text.contains(part), "{file} has no \"{part}\" in its header");
        }
        let name = file.trim_start_matches("lua/").trim_end_matches(".lua");
        assert!(
            orbit::store::live::scripts::SOURCES.iter().any(|(known, source)| *known == name && *source == text),
            "{file} is not in the table of scripts"
        );
        let decoder = std::fs::read_to_string(root().join(format!("src/store/live/{name}.rs"))).unwrap();
        let tags: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.split_once("return {'")?.1.split_once('\''))
            .map(|(tag, _)| tag)
            .collect();
        assert!(tags.len() > 1, "{file}: tags were not found");
        for tag in tags {
            assert!(decoder.contains(&format!("\"{tag}\"")), "{name}.rs does not decode {tag}");
            assert!(text.contains(&format!("--   {tag}")), "{file}: the header does not explain {tag}");
        }
    }
}
