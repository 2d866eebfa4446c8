//! Parses the items of FETCH.

use std::num::NonZeroU32;

use super::super::command::{BodyName, Command, FetchItem, Section, SectionText};
use super::tokens::{Parsed, Parser};

/// The maximum number of items.
const MAX_ITEMS: usize = 200;

const UNKNOWN_ITEM: &str = "Unknown item of FETCH";

impl Parser<'_> {
    pub(super) fn fetch(&mut self, is_uid: bool) -> Parsed<Command> {
        let set = self.sequence_set()?;
        self.space()?;
        let mut items = Vec::new();
        if self.peek() == Some(b'(') {
            self.list(|parser| parser.fetch_item(&mut items))?;
        } else {
            self.fetch_item(&mut items)?;
        }
        if items.len() > MAX_ITEMS {
            return Err("Too many items of FETCH");
        }
        let mut changed_since = None;
        if self.take_text(" (") {
            if !self.take_text("CHANGEDSINCE ") {
                return Err("The modifier of FETCH is not supported");
            }
            changed_since = Some(self.number()?);
            self.close()?;
        }
        Ok(Command::Fetch { set, is_uid, items, changed_since })
    }

    /// Parses an item. Macros are several items.
    fn fetch_item(&mut self, items: &mut Vec<FetchItem>) -> Parsed<()> {
        const FAST: [FetchItem; 3] = [FetchItem::Flags, FetchItem::InternalDate, FetchItem::Size];
        let item = match self.item_name().map_err(|_| UNKNOWN_ITEM)?.as_str() {
            macro_name @ ("FAST" | "ALL" | "FULL") => {
                items.extend(FAST);
                if macro_name != "FAST" {
                    items.push(FetchItem::Envelope);
                }
                if macro_name == "FULL" {
                    items.push(FetchItem::Structure { is_extended: false });
                }
                return Ok(());
            }
            "UID" => FetchItem::Uid,
            "FLAGS" => FetchItem::Flags,
            "INTERNALDATE" => FetchItem::InternalDate,
            "RFC822.SIZE" => FetchItem::Size,
            "ENVELOPE" => FetchItem::Envelope,
            "BODYSTRUCTURE" => FetchItem::Structure { is_extended: true },
            "BODY" if self.peek() == Some(b'[') => self.body(false)?,
            "BODY" => FetchItem::Structure { is_extended: false },
            "BODY.PEEK" => self.body(true)?,
            "RFC822" => whole_body(BodyName::Rfc822, SectionText::All, false),
            "RFC822.HEADER" => whole_body(BodyName::Rfc822Header, SectionText::Header, true),
            "RFC822.TEXT" => whole_body(BodyName::Rfc822Text, SectionText::Text, false),
            "BINARY" => self.binary(false)?,
            "BINARY.PEEK" => self.binary(true)?,
            "BINARY.SIZE" => FetchItem::BinarySize(self.binary_section()?),
            "MODSEQ" => FetchItem::ModSeq,
            "EMAILID" => FetchItem::EmailId,
            "THREADID" => FetchItem::ThreadId,
            "PREVIEW" => {
                self.take_text(" (LAZY)");
                FetchItem::Preview
            }
            _ => return Err(UNKNOWN_ITEM),
        };
        items.push(item);
        Ok(())
    }

    fn body(&mut self, is_peek: bool) -> Parsed<FetchItem> {
        let section = self.section()?;
        Ok(FetchItem::Body { name: BodyName::Body, section, partial: self.partial()?, is_peek })
    }

    fn binary(&mut self, is_peek: bool) -> Parsed<FetchItem> {
        let part = self.binary_section()?;
        Ok(FetchItem::Binary { part, partial: self.partial()?, is_peek })
    }

    fn section(&mut self) -> Parsed<Section> {
        self.open_section()?;
        let part = self.part_numbers()?;
        if self.take(b']') {
            return Ok(Section { part, text: SectionText::All });
        }
        if !part.is_empty() && !self.take(b'.') {
            return Err("Invalid section");
        }
        let text = match self.item_name().map_err(|_| "Invalid section")?.as_str() {
            "HEADER" => SectionText::Header,
            "TEXT" => SectionText::Text,
            "MIME" if !part.is_empty() => SectionText::Mime,
            "HEADER.FIELDS" => SectionText::HeaderFields(self.field_names()?),
            "HEADER.FIELDS.NOT" => SectionText::HeaderFieldsNot(self.field_names()?),
            _ => return Err("Unknown section"),
        };
        self.close_section()?;
        Ok(Section { part, text })
    }

    fn binary_section(&mut self) -> Parsed<Vec<NonZeroU32>> {
        self.open_section()?;
        let part = self.part_numbers()?;
        self.close_section()?;
        Ok(part)
    }

    fn open_section(&mut self) -> Parsed<()> {
        if self.take(b'[') { Ok(()) } else { Err("A section is missing") }
    }

    fn close_section(&mut self) -> Parsed<()> {
        if self.take(b']') { Ok(()) } else { Err("The end of a section is missing") }
    }

    /// Parses the numbers of a part, such as `1.2`. A dot before a name is not consumed.
    fn part_numbers(&mut self) -> Parsed<Vec<NonZeroU32>> {
        let mut part = Vec::new();
        while self.is_part_number(part.is_empty()) {
            if !part.is_empty() {
                self.take(b'.');
            }
            part.push(self.nonzero()?);
        }
        Ok(part)
    }

    fn field_names(&mut self) -> Parsed<Vec<String>> {
        self.space()?;
        self.list(|parser| {
            let name = parser.text()?;
            let is_valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            if is_valid { Ok(name) } else { Err("Invalid name of a header field") }
        })
    }

    /// Parses `<first.count>` if it is there.
    fn partial(&mut self) -> Parsed<Option<(u32, NonZeroU32)>> {
        if !self.take(b'<') {
            return Ok(None);
        }
        let first = self.number()?;
        if !self.take(b'.') {
            return Err("The number of octets is missing");
        }
        let count = self.nonzero()?;
        if self.take(b'>') { Ok(Some((first, count))) } else { Err("The end of a range is missing") }
    }
}

/// Returns the item of one of the old names.
fn whole_body(name: BodyName, text: SectionText, is_peek: bool) -> FetchItem {
    FetchItem::Body { name, section: Section { part: Vec::new(), text }, partial: None, is_peek }
}
