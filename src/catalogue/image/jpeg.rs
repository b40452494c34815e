//! The outline of a JPEG file: whether it is all there, and what decoding it will take.
//!
//! The decoder is forgiving, as browsers are: it fills what is missing with grey. A half-uploaded picture would so be
//! accepted as it is. This walk over the marker segments, which decodes nothing, finds the missing end, and markers where
//! none can be; and it tells the memory for pictures that are sent in several passes.

const START_OF_SCAN: u8 = 0xDA;
const END_OF_IMAGE: u8 = 0xD9;

/// What the marker segments of a whole file tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    /// Bytes that the decoder holds besides the pixels: every coefficient of a picture that comes in several passes
    /// (progressive, or one colour after another), nothing for the others.
    pub(super) coefficient_bytes: u64,
}

/// The frame header, as far as memory depends on it.
struct Frame {
    progressive: bool,
    components: usize,
    coefficient_bytes: u64,
}

impl Outline {
    /// Walks from the start to the end of the (first) image; `None` if it is cut short or its structure is damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[0xFF, 0xD8])?;
        let mut frame: Option<Frame> = None;
        let mut several_passes = None;
        loop {
            let marker;
            (marker, rest) = next_marker(rest)?;
            match marker {
                END_OF_IMAGE => {
                    let coefficient_bytes = if several_passes? { frame?.coefficient_bytes } else { 0 };
                    return Some(Self { coefficient_bytes });
                }
                0x01 | 0xD0..=0xD8 => continue,
                _ => {}
            }
            let segment;
            (segment, rest) = split_segment(rest)?;
            match marker {
                0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => frame = Some(Frame::read(marker, segment)?),
                START_OF_SCAN => {
                    let frame = frame.as_ref()?;
                    let in_scan = usize::from(*segment.first()?);
                    several_passes.get_or_insert(frame.progressive || in_scan < frame.components);
                    rest = skip_entropy_coded(rest)?;
                }
                _ => {}
            }
        }
    }
}

impl Frame {
    fn read(marker: u8, segment: &[u8]) -> Option<Self> {
        let [_precision, h1, h0, w1, w0, components, rest @ ..] = segment else { return None };
        let (height, width) = (u64::from(u16::from_be_bytes([*h1, *h0])), u64::from(u16::from_be_bytes([*w1, *w0])));
        let components = usize::from(*components);
        let sampling: Vec<(u64, u64)> = rest
            .get(..components * 3)?
            .chunks_exact(3)
            .map(|component| (u64::from(component[1] >> 4), u64::from(component[1] & 15)))
            .collect();
        let across_max = sampling.iter().map(|(across, _)| *across).max().filter(|max| *max > 0)?;
        let down_max = sampling.iter().map(|(_, down)| *down).max().filter(|max| *max > 0)?;
        let units = width.div_ceil(8 * across_max) * height.div_ceil(8 * down_max);
        // 64 coefficients of two bytes in each block.
        let coefficient_bytes = sampling.iter().map(|(across, down)| units * across * down * 128).sum();
        let progressive = matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE);
        Some(Self { progressive, components, coefficient_bytes })
    }
}

/// The next marker and what follows it. Stray bytes before it, which some cameras write, are passed over.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let position = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xFF))?;
    Some((bytes[position + 1], &bytes[position + 2..]))
}

/// The content of a segment, whose length (of itself and the content) comes first, and what follows it.
fn split_segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]));
    if length < 2 || length > bytes.len() {
        return None;
    }
    let (segment, rest) = bytes.split_at(length);
    Some((&segment[2..], rest))
}

/// Everything from the marker that ends the entropy-coded data on; `None` if there is none, or one that cannot be there.
fn skip_entropy_coded(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let position = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0x00 | 0xFF))?;
        match bytes[position + 1] {
            // Restart markers stand within the data.
            0xD0..=0xD7 => bytes = &bytes[position + 2..],
            // The end; the next scan; tables, line count, restart interval; application data; comments.
            END_OF_IMAGE | START_OF_SCAN | 0xC4 | 0xDB..=0xDD | 0xE0..=0xEF | 0xFE => return Some(&bytes[position..]),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(frame_marker: u8, components_in_scan: u8) -> Vec<u8> {
        let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xE1, 0, 6, 0xFF, 0xD9, 0xFF, 0xD9];
        // 17 x 9, three components, the first sampled 2 x 2.
        bytes.extend([0xFF, frame_marker, 0, 17, 8, 0, 9, 0, 17, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
        bytes.extend([0xFF, 0xDA, 0, 3, components_in_scan, 1, 2, 0xFF, 0x00, 3, 0xFF, 0xD0, 4]);
        bytes.extend([0xFF, 0xC4, 0, 2, 0xFF, 0xDA, 0, 3, 1, 5, 6, 0xFF, 0xD9]);
        bytes
    }

    #[test]
    fn only_pictures_in_several_passes_hold_their_coefficients() {
        assert_eq!(Outline::read(&file(0xC0, 3)).unwrap().coefficient_bytes, 0);
        // 2 x 1 units of 4 + 1 + 1 blocks.
        let several = 2 * 6 * 128;
        assert_eq!(Outline::read(&file(0xC2, 3)).unwrap().coefficient_bytes, several);
        assert_eq!(Outline::read(&file(0xC0, 1)).unwrap().coefficient_bytes, several);
    }

    #[test]
    fn a_missing_end_is_found_wherever_the_file_is_cut() {
        let whole = file(0xC2, 3);
        for length in 0..whole.len() {
            assert_eq!(Outline::read(&whole[..length]), None, "cut at {length}");
        }
        let mut longer = whole.clone();
        longer.extend([0xFF, 0xD8, 1, 2, 3]);
        assert!(Outline::read(&longer).is_some(), "what follows the image is not part of it");
    }

    #[test]
    fn a_marker_within_the_data_is_damage() {
        let mut bytes = file(0xC0, 3);
        let restart = bytes.windows(2).position(|pair| pair == [0xFF, 0xD0]).unwrap();
        bytes[restart + 1] = 0x37;
        assert_eq!(Outline::read(&bytes), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(tail in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Outline::read(&tail);
            let mut bytes = file(0xC2, 3);
            bytes.truncate(31);
            bytes.extend(tail);
            let _ = Outline::read(&bytes);
        }
    }
}
