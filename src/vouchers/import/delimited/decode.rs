//! From bytes in one of the encodings that spreadsheets save to UTF-8 with one kind of line end.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

use super::super::fault::ImportFault;

const CHUNK_BYTES: usize = 16 << 10;

/// The file's text, as bytes of UTF-8. `CRLF` and `CR` have become `LF`, and the last line has its end, so that whoever
/// counts `LF` counts lines. Nothing is replaced: what is no text is a fault.
pub(super) struct Utf8Text<R> {
    inner: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_at: usize,
    raw_ended: bool,
    text: Vec<u8>,
    text_at: usize,
    /// The line that the next character is in.
    line: u64,
    last: u8,
    finished: bool,
}

impl<R: Read> Utf8Text<R> {
    /// A byte order mark tells the encoding; without one it is UTF-8.
    pub(super) fn new(mut inner: R) -> io::Result<Self> {
        let mut raw = Vec::with_capacity(CHUNK_BYTES);
        inner.by_ref().take(3).read_to_end(&mut raw)?;
        let encoding = Encoding::for_bom(&raw).map_or(UTF_8, |(encoding, _)| encoding);
        Ok(Self {
            inner,
            encoding,
            decoder: encoding.new_decoder_with_bom_removal(),
            raw,
            raw_at: 0,
            raw_ended: false,
            text: Vec::new(),
            text_at: 0,
            line: 1,
            last: b'\n',
            finished: false,
        })
    }

    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.text_at = 0;
        while self.text.is_empty() && !self.finished {
            if self.raw_at == self.raw.len() && !self.raw_ended {
                self.raw.clear();
                self.raw_at = 0;
                self.raw_ended = self.inner.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.raw)? == 0;
            }
            self.decode()?;
        }
        Ok(())
    }

    fn decode(&mut self) -> io::Result<()> {
        let mut decoded = vec![0; 3 * CHUNK_BYTES];
        let raw = &self.raw[self.raw_at..];
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(raw, &mut decoded, self.raw_ended);
        self.raw_at += read;
        self.normalise(&decoded[..written])?;
        match result {
            DecoderResult::Malformed(..) => {
                let encoding = self.encoding.name();
                Err(ImportFault::NotText { line: self.line, encoding }.through_io())
            }
            DecoderResult::InputEmpty if self.raw_ended => {
                self.finished = true;
                if !matches!(self.last, b'\n' | b'\r') {
                    self.text.push(b'\n');
                }
                Ok(())
            }
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
        }
    }

    fn normalise(&mut self, decoded: &[u8]) -> io::Result<()> {
        for &byte in decoded {
            let before = std::mem::replace(&mut self.last, byte);
            match byte {
                0 => return Err(ImportFault::ZeroByte { line: self.line }.through_io()),
                b'\n' if before == b'\r' => {}
                b'\n' | b'\r' => {
                    self.line += 1;
                    self.text.push(b'\n');
                }
                byte => self.text.push(byte),
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf8Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text_at == self.text.len() {
            self.refill()?;
        }
        let read = (&self.text[self.text_at..]).read(buffer)?;
        self.text_at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, ImportFault> {
        let mut text = String::new();
        Utf8Text::new(bytes)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn utf16(text: &str, encode: fn(u16) -> [u8; 2]) -> Vec<u8> {
        format!("\u{FEFF}{text}").encode_utf16().flat_map(encode).collect()
    }

    #[test]
    fn every_mark_and_every_line_end_gives_the_same_text() {
        let wanted = "Çode;x\na\n\nb\n";
        let text = "Çode;x\r\na\r\rb";
        for bytes in [
            text.as_bytes().to_vec(),
            format!("\u{FEFF}{text}").into_bytes(),
            utf16(text, u16::to_le_bytes),
            utf16(text, u16::to_be_bytes),
            wanted.as_bytes().to_vec(),
        ] {
            assert_eq!(decoded(&bytes).unwrap(), wanted);
        }
        assert_eq!(decoded(b"a\r").unwrap(), "a\n");
        assert_eq!(decoded(b"").unwrap(), "");
    }

    #[test]
    fn characters_across_chunks_stay_whole() {
        let text = "ä€😀\r\n".repeat(CHUNK_BYTES / 3);
        let wanted = text.replace('\r', "");
        assert_eq!(decoded(text.as_bytes()).unwrap(), wanted);
        assert_eq!(decoded(&utf16(&text, u16::to_le_bytes)).unwrap(), wanted);
    }

    #[test]
    fn what_is_no_text_is_named_by_its_line() {
        for (bytes, at) in
            [(&b"a\r\nb\xFFc"[..], 2), (b"\xC3", 1), (b"\xFF\xFEa\x00b", 1), (b"\xFF\xFE\x00\xD8a\x00", 1)]
        {
            let fault = decoded(bytes).unwrap_err();
            assert!(matches!(fault, ImportFault::NotText { line, .. } if line == at), "{bytes:?}: {fault:?}");
        }
        assert!(matches!(decoded(b"a\nb\n\0"), Err(ImportFault::ZeroByte { line: 3 })));
        assert!(matches!(decoded(b"a\0b\0"), Err(ImportFault::ZeroByte { line: 1 })));
    }
}
