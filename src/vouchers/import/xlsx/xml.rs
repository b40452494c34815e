//! XML of a workbook's parts: no entities, no endless tags, no endless depth.

use std::borrow::Cow;
use std::io::BufRead;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::super::bounded::Bounded;
use super::super::fault::ImportFault;

/// Elements within elements. Worksheets have a dozen.
const DEPTH_MAX: u32 = 64;

/// A part's XML, event by event.
pub(super) struct Xml<R: BufRead> {
    reader: Reader<Bounded<R>>,
    buffer: Vec<u8>,
    depth: u32,
}

impl<R: BufRead> Xml<R> {
    pub(super) fn new(part: R, text_bytes_max: usize) -> Self {
        Self { reader: Reader::from_reader(Bounded::new(part, text_bytes_max)), buffer: Vec::new(), depth: 0 }
    }

    /// The next event. [`Event::Eof`] comes only when every element has ended.
    pub(super) fn next(&mut self) -> Result<Event<'_>, ImportFault> {
        self.buffer.clear();
        self.reader.get_mut().next_piece();
        let event = self.reader.read_event_into(&mut self.buffer)?;
        match &event {
            Event::Start(_) if self.depth == DEPTH_MAX => return Err(ImportFault::Damaged),
            Event::Start(_) => self.depth += 1,
            Event::End(_) => self.depth = self.depth.saturating_sub(1),
            Event::Eof if self.depth > 0 => return Err(ImportFault::Damaged),
            Event::DocType(_) => return Err(ImportFault::Entities),
            Event::Decl(declaration) => {
                let encoding = declaration.encoding().transpose()?;
                if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
                    return Err(ImportFault::Damaged);
                }
            }
            _ => {}
        }
        Ok(event)
    }
}

/// The text of an event, if it is one that has a text.
pub(super) fn text_of<'a>(event: &'a Event<'_>) -> Result<Option<Cow<'a, str>>, ImportFault> {
    Ok(match event {
        Event::Text(text) => Some(text.xml10_content()),
        Event::CData(text) => Some(text.xml10_content()),
        Event::GeneralRef(name) => match name.resolve_char_ref()? {
            Some(character) => Some(Cow::Owned(character.to_string())),
            None => Some(Cow::Borrowed(resolve_xml_entity(name).ok_or(ImportFault::Entities)?)),
        },
        _ => None,
    })
}

/// An attribute's value, by the name without its prefix: which prefix stands for what, each file says for itself.
pub(super) fn attribute<'a>(element: &'a BytesStart<'_>, name: &str) -> Result<Option<Cow<'a, str>>, ImportFault> {
    for attribute in element.attributes().with_checks(false) {
        let attribute = attribute?;
        if attribute.key.local_name().as_ref() == name {
            return Ok(Some(attribute.normalized_value(XmlVersion::Implicit1_0)?));
        }
    }
    Ok(None)
}

/// A flag as XML Schema writes it.
pub(super) fn flag(element: &BytesStart<'_>, name: &str) -> Result<bool, ImportFault> {
    Ok(matches!(attribute(element, name)?.as_deref(), Some("1" | "true")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(xml: &str) -> Result<String, ImportFault> {
        let mut xml = Xml::new(xml.as_bytes(), 1_000);
        let mut texts = String::new();
        loop {
            let event = xml.next()?;
            if let Some(text) = text_of(&event)? {
                texts.push_str(&text);
            }
            if matches!(event, Event::Eof) {
                return Ok(texts);
            }
        }
    }

    #[test]
    fn only_the_five_entities_and_numbers_are_known() {
        assert_eq!(texts("<a>1 &lt;&amp;&#x41;&#66; <![CDATA[<b>]]></a>").unwrap(), "1 <&AB <b>");
        assert!(matches!(texts("<a>&bomb;</a>"), Err(ImportFault::Entities)));
        let bomb = "<!DOCTYPE a [<!ENTITY bomb SYSTEM 'file:///etc/passwd'>]><a>&bomb;</a>";
        assert!(matches!(texts(bomb), Err(ImportFault::Entities)));
    }

    #[test]
    fn depth_and_tags_are_bounded_and_elements_must_end() {
        assert!(matches!(texts(&"<a>".repeat(100_000)), Err(ImportFault::Damaged)));
        let long = format!("<a b=\"{}\"/>", "x".repeat(2_000));
        assert!(matches!(texts(&long), Err(ImportFault::CellTooLong { .. })));
        assert!(matches!(texts("<a><b></b>"), Err(ImportFault::Damaged)));
        assert!(matches!(texts("<a></b>"), Err(ImportFault::Damaged)));
        assert!(matches!(texts("<?xml version=\"1.0\" encoding=\"UTF-16\"?><a/>"), Err(ImportFault::Damaged)));
    }
}
