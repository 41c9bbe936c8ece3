//! Finds the records of JSON documents in pieces of a file: the elements of the arrays at the end of a path, or whole
//! documents. The Python package has the same in Python, and documents it.
//!
//! Elements and top-level values may be separated by any commas and white space. Both kinds of brackets count alike
//! inside a value, because the judge of the elements parses it.

use std::collections::VecDeque;
use std::mem::take;

use memchr::{memchr, memchr2, memchr3};

use crate::memory::{NoRoom, room};
use crate::scan;
use crate::special::{AHEAD, brackets_ahead, specials_ahead};
use crate::strings;

/// What Python calls a step, a key to carry with its JSON text, and the limits.
pub struct Rules {
    pub steps: Vec<Option<Vec<u8>>>,
    pub keep: Vec<(Vec<u8>, Vec<u8>)>,
    pub max_bytes: usize,
    pub block_bytes: usize,
    pub max_held: usize,
}

/// Elements that follow each other.
#[derive(Default)]
pub struct Block {
    pub lines: Vec<u8>,
    exact: Vec<u8>,
    fields: Vec<u8>,
    elements: Vec<Element>,
}

struct Element {
    offset: usize,
    /// The place of its exact bytes, among the lines if its line consists of them, else in `exact`.
    start: usize,
    end: usize,
    is_line: bool,
    fields: (usize, usize),
}

impl Block {
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The offset, the exact bytes and the carried fields of an element.
    #[must_use]
    pub fn element(&self, number: usize) -> Option<(usize, &[u8], &[u8])> {
        let Element { offset, start, end, is_line, fields: (from, to) } = *self.elements.get(number)?;
        let bytes = if is_line { &self.lines } else { &self.exact };
        Some((offset, &bytes[start..end], &self.fields[from..to]))
    }

    /// Adds an element with its fields, on one line.
    fn add(&mut self, offset: usize, raw: &[u8], fields: &[u8]) -> Result<(), NoRoom> {
        room(&mut self.lines, raw.len() + fields.len() + 2)?;
        room(&mut self.elements, 1)?;
        let has_line_feed = memchr(b'\n', raw).is_some();
        let is_line = fields.is_empty() && !has_line_feed;
        let bytes = if is_line { &self.lines } else { &self.exact };
        let (start, at) = (bytes.len(), self.lines.len());
        if !is_line {
            room(&mut self.exact, raw.len())?;
            self.exact.extend_from_slice(raw);
        }
        match raw.split_first() {
            Some((b'{', rest)) if !fields.is_empty() => {
                self.lines.push(b'{');
                self.lines.extend_from_slice(fields);
                let first = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
                if first != Some(&b'}') {
                    self.lines.push(b',');
                }
                self.lines.extend_from_slice(rest);
            }
            _ => self.lines.extend_from_slice(raw),
        }
        if has_line_feed {
            put_on_one_line(&mut self.lines[at..]);
        }
        self.lines.push(b'\n');
        let before = self.elements.last().map_or((0, 0), |element| element.fields);
        let fields = if self.fields[before.0..before.1] == *fields {
            before
        } else {
            room(&mut self.fields, fields.len())?;
            self.fields.extend_from_slice(fields);
            (self.fields.len() - fields.len(), self.fields.len())
        };
        self.elements.push(Element { offset, start, end: start + raw.len(), is_line, fields });
        Ok(())
    }
}

/// Replaces line feeds by spaces, or by carriage returns if one is inside a string, where JSON forbids it.
fn put_on_one_line(element: &mut [u8]) {
    let other = if has_line_feed_in_string(element) { b'\r' } else { b' ' };
    let mut at = 0;
    while let Some(found) = memchr(b'\n', &element[at..]) {
        element[at + found] = other;
        at += found + 1;
    }
}

fn has_line_feed_in_string(element: &[u8]) -> bool {
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &element[at..]) {
        at += quote + 1;
        loop {
            let Some(found) = memchr3(b'"', b'\\', b'\n', &element[at..]) else { return true };
            at += found + 1;
            match element[at - 1] {
                b'"' => break,
                b'\n' => return true,
                _ if element.get(at).is_none_or(|&escaped| escaped == b'\n') => return true,
                _ => at += 1,
            }
        }
    }
    false
}

/// An element that is refused before any judge sees it, or a part of one.
pub struct Refusal {
    pub offset: usize,
    pub reason: &'static str,
    pub raw: Vec<u8>,
    pub fields: Vec<u8>,
    pub begins: bool,
}

/// Why a file cannot be read on.
pub struct Fault {
    pub kind: &'static str,
    pub offset: usize,
    pub key: String,
}

pub enum Found {
    Block(Block),
    Refusal(Refusal),
    Fault(Fault),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Record,
    /// Something else where the path leads.
    Aside,
    Key,
    Kept,
    Other,
}

/// What must come next in an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A key, or the end.
    First,
    Key,
    Colon,
    Value,
    Comma,
}

/// An open object or array on the path.
struct Frame {
    is_object: bool,
    /// The number of steps that lead into it.
    level: usize,
    fields_before: usize,
    next: Next,
    has_records: bool,
    has_values: bool,
}

/// The state between two pieces. `buffer` has the bytes still needed, starting at `offset` and scanned up to `at`.
#[allow(clippy::struct_excessive_bools)] // each is a state of its own
pub struct Scanner {
    rules: Rules,
    buffer: Vec<u8>,
    offset: usize,
    at: usize,
    /// Where the current value, or the rest of it, starts in the buffer.
    start: Option<usize>,
    value: Value,
    depth: usize,
    in_string: bool,
    is_over_long: bool,
    in_array: bool,
    frames: Vec<Frame>,
    /// Where the current document starts in the file, until its records are found.
    document: Option<usize>,
    /// None if it is not text.
    key: Option<Vec<u8>>,
    fields: Vec<u8>,
    block: Block,
    found: VecDeque<Found>,
    is_fed: bool,
}

impl Scanner {
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            buffer: Vec::new(),
            offset: 0,
            at: 0,
            start: None,
            value: Value::Other,
            depth: 0,
            in_string: false,
            is_over_long: false,
            in_array: false,
            frames: Vec::new(),
            document: None,
            key: None,
            fields: Vec::new(),
            block: Block::default(),
            found: VecDeque::new(),
            is_fed: false,
        }
    }

    /// Adds the next piece of the file.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), NoRoom> {
        room(&mut self.buffer, piece.len())?;
        self.buffer.extend_from_slice(piece);
        self.is_fed = true;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn finish(&mut self) -> Result<(), NoRoom> {
        if let (Some(start), 0, false, true) = (self.start, self.depth, self.in_string, self.frames.is_empty()) {
            self.end_value(start)?;
        }
        self.pass_on();
        Ok(())
    }

    /// Whether the bytes so far end inside an element, an array or a document.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.start.is_some() || self.in_array || !self.frames.is_empty()
    }

    /// The next thing that the pieces so far complete.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn take(&mut self) -> Result<Option<Found>, NoRoom> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Ok(Some(found));
            }
            if !self.is_fed {
                return Ok(None);
            }
            if self.at == self.buffer.len() || !self.step()? {
                self.part()?;
                self.forget();
                self.is_fed = false;
            }
        }
    }

    /// Goes on; false if the buffer ends before the value does.
    fn step(&mut self) -> Result<bool, NoRoom> {
        let start = self.start;
        match start {
            None => self.pass_between()?,
            Some(start) if self.reaches_end() => self.end_value(start)?,
            Some(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Goes on to the next value, or into or out of the next object or array on the path.
    fn pass_between(&mut self) -> Result<(), NoRoom> {
        let level = match self.frames.last() {
            Some(frame) if frame.is_object => return self.pass_in_object(),
            Some(frame) => frame.level,
            None => 0,
        };
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | b',') = self.buffer.get(self.at) {
            self.at += 1;
        }
        let Some(&first) = self.buffer.get(self.at) else { return Ok(()) };
        let is_outside = self.frames.is_empty();
        if first == b']' && !is_outside {
            return self.leave();
        }
        if first == b']' && self.in_array {
            self.in_array = false;
            self.at += 1;
        } else if first == b'[' && is_outside && !self.in_array {
            self.in_array = true;
            self.at += 1;
        } else {
            match self.frames.last_mut() {
                Some(frame) => frame.has_values = true,
                None => self.document = Some(self.offset + self.at),
            }
            self.begin_on_path(level);
        }
        Ok(())
    }

    fn pass_in_object(&mut self) -> Result<(), NoRoom> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.buffer.get(self.at) {
            self.at += 1;
        }
        let Some(&first) = self.buffer.get(self.at) else { return Ok(()) };
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        match (frame.next, first) {
            (Next::First | Next::Comma, b'}') => return self.leave(),
            (Next::First | Next::Key, b'"') => self.begin(Value::Key),
            (Next::Colon, b':') => {
                frame.next = Next::Value;
                self.at += 1;
            }
            (Next::Comma, b',') => {
                frame.next = Next::Key;
                self.at += 1;
            }
            (Next::Value, _) if !matches!(first, b',' | b':' | b']' | b'}') => self.begin_in_object(),
            _ => self.fail("malformed", self.offset + self.at),
        }
        Ok(())
    }

    fn begin_in_object(&mut self) {
        let Some(frame) = self.frames.last() else { return };
        if self.key.is_some() && self.key == self.rules.steps[frame.level - 1] {
            self.begin_on_path(frame.level);
        } else if !self.rules.keep.iter().any(|(key, _)| self.key.as_ref() == Some(key)) {
            self.begin(Value::Other);
        } else if frame.has_records {
            self.fail("late", self.offset + self.at);
        } else {
            self.begin(Value::Kept);
        }
    }

    /// Begins an element, or enters an object or array.
    fn begin_on_path(&mut self, level: usize) {
        let Some(key) = self.rules.steps.get(level) else { return self.begin(Value::Record) };
        let is_object = key.is_some();
        if self.buffer[self.at] != if is_object { b'{' } else { b'[' } {
            return self.begin(Value::Aside);
        }
        self.at += 1;
        self.frames.push(Frame {
            is_object,
            level: level + 1,
            fields_before: self.fields.len(),
            next: Next::First,
            has_records: false,
            has_values: false,
        });
        if !is_object && level + 1 == self.rules.steps.len() {
            self.document = None;
        }
    }

    fn begin(&mut self, value: Value) {
        let first = self.buffer[self.at];
        self.value = value;
        self.start = Some(self.at);
        self.depth = usize::from(matches!(first, b'{' | b'['));
        self.in_string = first == b'"';
        self.at += 1;
    }

    /// Continues scanning; returns whether the value ends there.
    fn reaches_end(&mut self) -> bool {
        let buffer = &self.buffer[..];
        let mut at = self.at;
        if self.depth == 0 && !self.in_string {
            while let Some(byte) = buffer.get(at) {
                if matches!(byte, b',' | b'[' | b']' | b'{' | b'}' | b'"' | b' ' | b'\t' | b'\r' | b'\n') {
                    self.at = at;
                    return true;
                }
                at += 1;
            }
            self.at = at;
            return false;
        }
        let (is_end, at) = self.reaches_end_of_nested(at);
        self.at = at;
        is_end
    }

    /// The same in a string, an object or an array; also returns how far it got.
    fn reaches_end_of_nested(&mut self, start: usize) -> (bool, usize) {
        let buffer = &self.buffer[..];
        let (mut at, mut is_escaped) = (start, false);
        while let (Some(ahead), Some((opening, closing))) = (specials_ahead(buffer, at), brackets_ahead(buffer, at)) {
            let (escaped, is_next_escaped) = ahead.escaped(is_escaped);
            let quotes = ahead.quotes & !escaped;
            if self.depth == 0 && quotes != 0 {
                self.in_string = false;
                return (true, at + quotes.trailing_zeros() as usize + 1);
            }
            let inside = from_each_to_next(quotes) ^ if self.in_string { u32::MAX } else { 0 };
            if ahead.backslashes & !inside != 0 {
                break; // no JSON: here a backslash escapes nothing
            }
            let (opening, closing) = (opening & !inside, closing & !inside);
            if closing.count_ones() as usize >= self.depth && self.depth > 0 {
                let mut brackets = opening | closing;
                while brackets != 0 {
                    let place = brackets.trailing_zeros();
                    brackets &= brackets - 1;
                    if opening >> place & 1 == 1 {
                        self.depth += 1;
                        continue;
                    }
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.in_string = false;
                        return (true, at + place as usize + 1);
                    }
                }
            } else {
                self.depth = self.depth + opening.count_ones() as usize - closing.count_ones() as usize;
            }
            self.in_string = inside >> (AHEAD - 1) == 1;
            is_escaped = is_next_escaped;
            at += AHEAD;
        }
        if is_escaped {
            if at == buffer.len() {
                return (false, at - 1); // half an escape
            }
            at += 1;
        }
        loop {
            if self.in_string {
                let Some(found) = memchr2(b'"', b'\\', &buffer[at..]) else { return (false, buffer.len()) };
                at += found;
                if buffer[at] == b'\\' {
                    if at + 1 == buffer.len() {
                        return (false, at);
                    }
                    at += 2;
                    continue;
                }
                self.in_string = false;
                at += 1;
            } else {
                let structure = buffer[at..].iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'));
                let Some(found) = structure else { return (false, buffer.len()) };
                at += found + 1;
                match buffer[at - 1] {
                    b'"' => {
                        self.in_string = true;
                        continue;
                    }
                    b'{' | b'[' => self.depth += 1,
                    _ => self.depth -= 1,
                }
            }
            if self.depth == 0 {
                return (true, at);
            }
        }
    }

    fn end_value(&mut self, start: usize) -> Result<(), NoRoom> {
        self.start = None;
        if matches!(self.value, Value::Record | Value::Aside) {
            self.end_element(start)?;
        }
        let end = self.at;
        let Some(frame) = self.frames.last_mut() else {
            self.document = None;
            return Ok(());
        };
        if !frame.is_object {
            return Ok(());
        }
        frame.next = if self.value == Value::Key { Next::Colon } else { Next::Comma };
        match self.value {
            Value::Key if end - start > self.most_bytes() => self.fail("key", self.offset + start),
            Value::Kept if end - start > self.most_bytes() => self.fail("kept", self.offset + start),
            Value::Key => self.key = decoded(&self.buffer[start + 1..end - 1]),
            Value::Kept => self.keep(start)?,
            _ => {}
        }
        Ok(())
    }

    /// A limit below the length of `null` could not be applied to it.
    fn most_bytes(&self) -> usize {
        self.rules.max_bytes.max(b"null".len())
    }

    fn end_element(&mut self, start: usize) -> Result<(), NoRoom> {
        let length = self.at - start;
        if self.value == Value::Aside {
            // null is as good as no array
            if self.frames.is_empty() || self.is_over_long || self.buffer[start..self.at] != *b"null" {
                self.refuse("no_records", start, self.at, true)?;
            }
        } else if self.is_over_long || length > self.rules.max_bytes {
            self.refuse("line_too_long", start, self.at, true)?;
        } else {
            if let Some(frame) = self.frames.last_mut() {
                frame.has_records = true;
            }
            if self.block.is_empty() {
                room(&mut self.block.lines, self.rules.block_bytes.min(self.buffer.len()))?;
            }
            self.block.add(
                self.offset + start,
                &self.buffer[start..self.at],
                self.fields.get(1..).unwrap_or_default(),
            )?;
            if self.block.lines.len() >= self.rules.block_bytes || self.block.len() == self.rules.max_held {
                self.pass_on();
            }
        }
        Ok(())
    }

    fn refuse(&mut self, reason: &'static str, start: usize, end: usize, is_last: bool) -> Result<(), NoRoom> {
        self.pass_on();
        self.document = None;
        if let Some(frame) = self.frames.last_mut() {
            frame.has_records = true;
        }
        let fields = self.fields.get(1..).unwrap_or_default();
        for (number, part) in self.buffer[start..end].chunks(self.rules.max_bytes).enumerate() {
            let (mut raw, mut carried) = (Vec::new(), Vec::new());
            room(&mut raw, part.len())?;
            room(&mut carried, fields.len())?;
            raw.extend_from_slice(part);
            carried.extend_from_slice(fields);
            let offset = self.offset + start + number * self.rules.max_bytes;
            let begins = number == 0 && !self.is_over_long;
            self.found.push_back(Found::Refusal(Refusal { offset, reason, raw, fields: carried, begins }));
        }
        self.is_over_long = !is_last;
        Ok(())
    }

    fn pass_on(&mut self) {
        if !self.block.is_empty() {
            self.found.push_back(Found::Block(take(&mut self.block)));
        }
    }

    fn keep(&mut self, start: usize) -> Result<(), NoRoom> {
        let keep = self.rules.keep.iter().find(|(key, _)| self.key.as_ref() == Some(key));
        let Some((_, key)) = keep else { return Ok(()) };
        let value = &self.buffer[start..self.at];
        room(&mut self.fields, key.len() + value.len() + 3)?;
        self.fields.push(b',');
        self.fields.extend_from_slice(key);
        self.fields.push(b':');
        let from = self.fields.len();
        self.fields.extend_from_slice(value);
        put_on_one_line(&mut self.fields[from..]);
        self.fields.push(b'\n');
        let is_valid = scan::is_value(&self.fields[from..]);
        self.fields.pop();
        if !is_valid {
            self.fail("kept", self.offset + start);
        }
        Ok(())
    }

    /// Leaves the innermost object or array.
    fn leave(&mut self) -> Result<(), NoRoom> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        self.at += 1;
        self.fields.truncate(frame.fields_before);
        if !(frame.is_object || frame.has_values) {
            self.document = None; // an empty array is no reason to refuse its document
        }
        if let Some(outer) = self.frames.last_mut() {
            outer.has_records |= frame.has_records;
            outer.next = Next::Comma;
        } else if let Some(document) = self.document {
            match document.checked_sub(self.offset) {
                Some(start) if self.at - start <= self.rules.max_bytes => {
                    self.refuse("no_records", start, self.at, true)?;
                }
                _ => self.fail("no_records", document),
            }
        }
        Ok(())
    }

    /// Passes on the held part of an element that is already too long.
    fn part(&mut self) -> Result<(), NoRoom> {
        let Some(start) = self.start else { return Ok(()) };
        if self.at - start <= self.most_bytes() {
            return Ok(());
        }
        let reason = match self.value {
            Value::Key => {
                self.fail("key", self.offset + start);
                return Ok(());
            }
            Value::Kept => {
                self.fail("kept", self.offset + start);
                return Ok(());
            }
            Value::Other => return Ok(()),
            Value::Aside => "no_records",
            Value::Record => "line_too_long",
        };
        let end = start + (self.at - start) / self.rules.max_bytes * self.rules.max_bytes;
        self.refuse(reason, start, end, false)?;
        self.start = Some(end);
        Ok(())
    }

    /// Forgets bytes that are no longer needed.
    fn forget(&mut self) {
        if self.value == Value::Other && self.start.is_some() {
            self.start = Some(self.at);
        }
        let mut done = self.start.unwrap_or(self.at);
        if let (false, Some(document)) = (self.frames.is_empty(), self.document) {
            // A document without records is a reject, if it is no longer than a line may be.
            if let Some(start) = document.checked_sub(self.offset)
                && start < done
                && self.at - start <= self.rules.max_bytes
            {
                done = start;
            }
        }
        self.buffer.drain(..done);
        self.offset += done;
        self.at -= done;
        self.start = self.start.map(|start| start - done);
    }

    fn fail(&mut self, kind: &'static str, offset: usize) {
        self.pass_on();
        let key = if matches!(kind, "late" | "kept") { self.key.as_deref().unwrap_or_default() } else { b"" };
        let key = String::from_utf8_lossy(key).into_owned();
        self.found.push_back(Found::Fault(Fault { kind, offset, key }));
        self.at = self.buffer.len();
    }
}

/// Sets the bits from every other set bit on to the one before the next: those of the insides of strings.
const fn from_each_to_next(places: u32) -> u32 {
    let mut inside = places;
    inside ^= inside << 1;
    inside ^= inside << 2;
    inside ^= inside << 4;
    inside ^= inside << 8;
    inside ^ inside << 16
}

/// The text of a key; None if it is not text.
fn decoded(inner: &[u8]) -> Option<Vec<u8>> {
    if memchr(b'\\', inner).is_none() {
        return Some(inner.to_vec());
    }
    let whole = [b"\"", inner, b"\"\n"].concat();
    let mut text = Vec::new();
    scan::is_value(&whole).then(|| strings::unescape_into(inner, &mut text))?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(steps: &[Option<&str>], keep: &[&str]) -> Rules {
        let text = |key: &&str| (key.as_bytes().to_vec(), format!("\"{key}\"").into_bytes());
        Rules {
            steps: steps.iter().map(|key| key.map(|key| key.as_bytes().to_vec())).collect(),
            keep: keep.iter().map(text).collect(),
            max_bytes: 40,
            block_bytes: 30,
            max_held: 4,
        }
    }

    /// The lines, refusals and fault of a file in pieces of a size.
    fn run(data: &[u8], rules: Rules, size: usize) -> (String, Vec<String>) {
        let mut scanner = Scanner::new(rules);
        let (mut lines, mut others) = (Vec::new(), Vec::new());
        let mut end = false;
        for piece in data.chunks(size).map(Some).chain([None]) {
            match piece {
                Some(piece) => scanner.feed(piece).unwrap(),
                None => scanner.finish().unwrap(),
            }
            while let Some(found) = scanner.take().unwrap().filter(|_| !end) {
                match found {
                    Found::Block(block) => {
                        for number in 0..block.len() {
                            let (offset, raw, _) = block.element(number).unwrap();
                            assert_eq!(&data[offset..offset + raw.len()], raw);
                        }
                        lines.extend_from_slice(&block.lines);
                    }
                    Found::Refusal(each) => others.push(format!("{} {}", each.offset, each.reason)),
                    Found::Fault(each) => {
                        others.push(format!("{} {} {}", each.offset, each.kind, each.key));
                        end = true;
                    }
                }
            }
        }
        if scanner.is_open() && !end {
            others.push("open".to_owned());
        }
        (String::from_utf8(lines).unwrap(), others)
    }

    #[test]
    fn records_at_a_path() {
        let data = b"{\"k\":\"v\",\"a\":[{\"b\":1},\n{ },{\"c\":\n\"\\\"]\"},2]}{\"x\":1} 7 {\"a\":null}";
        for size in 1..data.len() {
            let (lines, others) = run(data, rules(&[Some("a"), None], &["k"]), size);
            assert_eq!(
                lines, "{\"k\":\"v\",\"b\":1}\n{\"k\":\"v\" }\n{\"k\":\"v\",\"c\": \"\\\"]\"}\n2\n",
                "in pieces of {size}"
            );
            assert_eq!(others, ["43 no_records", "51 no_records", "53 no_records"]);
        }
    }

    #[test]
    fn faults() {
        for (data, expected) in [
            (&b"{\"a\":[{}],\"k\":1}"[..], "14 late k"),
            (b"{\"k\":tru,\"a\":[{}]}", "5 kept k"),
            (b"{\"a\" 1}", "5 malformed "),
            (b"{\"a\":[{}", "open"),
            (b"{\"x\":\"0123456789012345678901234567890123456789\"}", "0 no_records "),
        ] {
            for size in 1..data.len() {
                assert_eq!(run(data, rules(&[Some("a"), None], &["k"]), size).1, [expected]);
            }
        }
    }

    #[test]
    fn line_feeds() {
        for (element, is_in_string) in
            [("{\n\"a\":\"b\"\n}", false), ("{\"a\n\"", true), ("[\"\\\"\n\"]", true), ("\"\\\\\"\n", false)]
        {
            assert_eq!(has_line_feed_in_string(element.as_bytes()), is_in_string, "{element}");
        }
    }
}
