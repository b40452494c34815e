//! Which part of the archive is the sheet, and what belongs to it.

use std::io::{BufRead, Read, Seek};

use chrono::NaiveDate;
use quick_xml::events::Event;

use super::super::fault::ImportFault;
use super::package::Package;
use super::xml::{Xml, attribute, flag};

const MAIN: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.";

/// Pointers that a part may have. Real workbooks have one for each sheet, and a few more.
const RELATIONSHIPS_MAX: usize = 10_000;

/// Names of the parts that are read, and the day that dates are counted from.
pub(super) struct Workbook {
    pub(super) sheet: String,
    pub(super) strings: Option<String>,
    pub(super) styles: Option<String>,
    pub(super) epoch: NaiveDate,
}

/// A pointer from one part to another.
struct Relationship {
    id: String,
    kind: String,
    target: String,
}

impl Workbook {
    pub(super) fn read<F: Read + Seek>(package: &mut Package<F>) -> Result<Self, ImportFault> {
        let roots = relationships(package.part("_rels/.rels")?, "")?;
        let root = roots.into_iter().find(|root| root.kind == "officeDocument").ok_or(ImportFault::NotASpreadsheet)?;
        check_content_type(package.part("[Content_Types].xml")?, &root.target)?;
        let (folder, name) = root.target.rsplit_once('/').unwrap_or(("", &root.target));
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let related = relationships(package.part(&format!("{prefix}_rels/{name}.rels"))?, folder)?;
        let (sheet, epoch) = first_sheet(package.part(&root.target)?)?;
        let of_kind = |kind| related.iter().find(|related| related.kind == kind).map(|found| found.target.clone());
        let sheet = related.iter().find(|related| related.id == sheet && related.kind == "worksheet");
        let sheet = sheet.ok_or(ImportFault::NotASpreadsheet)?.target.clone();
        Ok(Self { sheet, strings: of_kind("sharedStrings"), styles: of_kind("styles"), epoch })
    }
}

/// The pointers that lead to parts of the archive; those to elsewhere are left out.
fn relationships<R: BufRead>(mut xml: Xml<R>, folder: &str) -> Result<Vec<Relationship>, ImportFault> {
    let mut found = Vec::new();
    loop {
        match xml.next()? {
            Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "Relationship" => {
                if attribute(&element, "TargetMode")?.as_deref() == Some("External") {
                    continue;
                }
                if found.len() == RELATIONSHIPS_MAX {
                    return Err(ImportFault::Damaged);
                }
                let required = |name| attribute(&element, name)?.ok_or(ImportFault::Damaged);
                let kind = required("Type")?;
                found.push(Relationship {
                    id: required("Id")?.into_owned(),
                    // The strict dialect of the format has other addresses that end in the same words.
                    kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                    target: resolve(folder, &required("Target")?)?,
                });
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

/// The name of a part, from the folder of the part that points to it.
fn resolve(folder: &str, target: &str) -> Result<String, ImportFault> {
    let (folder, target) = target.strip_prefix('/').map_or((folder, target), |absolute| ("", absolute));
    let mut path: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => path.pop().map(drop).ok_or(ImportFault::Damaged)?,
            step => path.push(step),
        }
    }
    Ok(path.join("/"))
}

/// Whether the main part is said to be a workbook without macros.
fn check_content_type<R: BufRead>(mut xml: Xml<R>, part: &str) -> Result<(), ImportFault> {
    loop {
        match xml.next()? {
            Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "Override" => {
                let name = attribute(&element, "PartName")?.unwrap_or_default();
                if !name.trim_start_matches('/').eq_ignore_ascii_case(part) {
                    continue;
                }
                let kind = attribute(&element, "ContentType")?.unwrap_or_default();
                return match kind.strip_prefix(MAIN) {
                    Some("sheet.main+xml" | "template.main+xml") => Ok(()),
                    _ if kind.contains("binary") => Err(ImportFault::BinaryWorkbook),
                    _ if kind.contains("macroEnabled") => Err(ImportFault::Macros),
                    _ => Err(ImportFault::NotASpreadsheet),
                };
            }
            Event::Eof => return Err(ImportFault::NotASpreadsheet),
            _ => {}
        }
    }
}

/// The pointer to the first sheet that is shown, and the day that the workbook counts from.
fn first_sheet<R: BufRead>(mut xml: Xml<R>) -> Result<(String, NaiveDate), ImportFault> {
    let mut sheet = None;
    let mut from_1904 = false;
    loop {
        match xml.next()? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                "workbookPr" => from_1904 = flag(&element, "date1904")?,
                "sheet" if sheet.is_none() => {
                    let state = attribute(&element, "state")?;
                    if matches!(state.as_deref(), None | Some("visible")) {
                        sheet = attribute(&element, "id")?.map(|id| id.into_owned());
                    }
                }
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    // Day 1 is 1 January 1900, and day 60 a 29 February that was none: from March 1900 on, days count from here.
    let epoch = if from_1904 { NaiveDate::from_ymd_opt(1904, 1, 1) } else { NaiveDate::from_ymd_opt(1899, 12, 30) };
    Ok((sheet.ok_or(ImportFault::NotASpreadsheet)?, epoch.ok_or(ImportFault::Damaged)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_stay_within_the_archive() {
        assert_eq!(resolve("xl", "worksheets/sheet1.xml").unwrap(), "xl/worksheets/sheet1.xml");
        assert_eq!(resolve("xl", "/xl/./styles.xml").unwrap(), "xl/styles.xml");
        assert_eq!(resolve("xl", "../a.xml").unwrap(), "a.xml");
        assert!(resolve("xl", "../../etc/passwd").is_err());
    }
}
