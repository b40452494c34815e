//! The archive around a workbook, which is where most attacks on a reader are.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use zip::ZipArchive;
use zip::read::ZipFile;

use super::super::fault::ImportFault;
use super::super::limits::Limits;
use super::xml::Xml;

/// What every entry of an archive's directory begins with.
const DIRECTORY_ENTRY: u32 = u32::from_be_bytes(*b"PK\x01\x02");
/// Small parts may be anything: blank ones compress a thousandfold.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// An opened archive, and what may still be unpacked of it.
pub(super) struct Package<F> {
    archive: ZipArchive<F>,
    file_bytes: u64,
    unpacked_left: u64,
    limits: Limits,
}

/// A part, unpacked as it is read.
pub(super) struct Unpacked<'a, F: Read> {
    part: ZipFile<'a, F>,
    packed: u64,
    unpacked: u64,
    left: &'a mut u64,
    ratio_max: u64,
}

impl<F: Read + Seek> Package<F> {
    pub(super) fn open(mut file: F, limits: &Limits) -> Result<Self, ImportFault> {
        // The library holds a record of every part, however many there are said to be.
        if directory_entries(&mut file)? > limits.parts_max {
            return Err(ImportFault::TooManyParts { parts_max: limits.parts_max });
        }
        let file_bytes = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let archive = ZipArchive::new(file)?;
        // Of two parts with one name, readers take different ones.
        if archive.has_duplicate_names() {
            return Err(ImportFault::Damaged);
        }
        check_names(archive.file_names_raw())?;
        Ok(Self { archive, file_bytes, unpacked_left: limits.unpacked_bytes_max, limits: *limits })
    }

    /// The part of this name, without a slash in front. Names do not differ by case.
    pub(super) fn part(&mut self, name: &str) -> Result<Xml<BufReader<Unpacked<'_, F>>>, ImportFault> {
        let same = |known: &[u8]| known.eq_ignore_ascii_case(name.as_bytes());
        let index = self.archive.file_names_raw().position(same).ok_or(ImportFault::Damaged)?;
        let part = self.archive.by_index(index)?;
        let unpacked = Unpacked {
            // The directory may exaggerate.
            packed: part.compressed_size().min(self.file_bytes).max(1),
            part,
            unpacked: 0,
            left: &mut self.unpacked_left,
            ratio_max: self.limits.unpack_ratio_max,
        };
        Ok(Xml::new(BufReader::new(unpacked), self.limits.text_bytes_max))
    }
}

impl<F: Read> Read for Unpacked<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.part.read(buffer)?;
        self.unpacked += read as u64;
        let left = self.left.checked_sub(read as u64);
        let ratio = self.unpacked > RATIO_FREE_BYTES && self.unpacked / self.packed >= self.ratio_max;
        match left {
            Some(left) if !ratio => *self.left = left,
            _ => return Err(ImportFault::UnpacksTooLarge.through_io()),
        }
        Ok(read)
    }
}

/// What a reader could take for entries of the archive's directory, wherever it looks for that directory.
fn directory_entries(file: &mut (impl Read + Seek)) -> io::Result<usize> {
    file.rewind()?;
    let mut chunk = vec![0; 64 << 10];
    let (mut entries, mut window) = (0, 0_u32);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(entries);
        }
        for byte in &chunk[..read] {
            window = (window << 8) | u32::from(*byte);
            entries += usize::from(window == DIRECTORY_ENTRY);
        }
    }
}

/// Refuses programs, and what is another format within the same kind of archive.
fn check_names<'a>(names: impl Iterator<Item = &'a [u8]>) -> Result<(), ImportFault> {
    for name in names {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if name.ends_with("vbaproject.bin") || name.starts_with("xl/macrosheets/") {
            return Err(ImportFault::Macros);
        }
        if name == "xl/workbook.bin" {
            return Err(ImportFault::BinaryWorkbook);
        }
        if name == "mimetype" {
            return Err(ImportFault::OpenDocument);
        }
    }
    Ok(())
}
