//! Patterns of keys, as SCAN's MATCH reads them.

/// Whether the whole text matches. Understands `*`, `?` and a backslash; braces mean themselves.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        Some((b'?', rest)) => !text.is_empty() && matches(rest, &text[1..]),
        Some((b'\\', rest)) if !rest.is_empty() => text.first() == rest.first() && matches(&rest[1..], &text[1..]),
        Some((literal, rest)) => text.first() == Some(literal) && matches(rest, &text[1..]),
    }
}

#[test]
fn patterns_match_as_in_redis() {
    let cases = [
        ("*", "", true),
        ("a*c", "abbc", true),
        ("a*c", "abbd", false),
        ("p:*{e}*", "p:event:{e}:journal", true),
        ("p:*{e}*", "p:event:{f}:journal", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        (r"a\*c", "a*c", true),
        (r"a\*c", "abc", false),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
}
