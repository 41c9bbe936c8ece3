//! Matches lines, and writes the captures of each as one JSON object.
//!
//! Lines may be hostile. So each is matched with a step limit that does not depend on the machine's speed: the same
//! line has the same outcome everywhere. The library is memory-safe, and a panic in it affects only its line.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use fancy_regex::{Captures, Regex, RegexBuilder};

/// The longest line that is matched, and the longest record it may become.
const MAX_LINE_BYTES: usize = 1024 * 1024;
const MAX_RECORD_BYTES: usize = 8 * 1024 * 1024;

/// A line of this length may take all steps. One up to four times as long gets a fourth, and so on, because a step may
/// look at the whole rest of the line.
const STEPS_FOR_BYTES: usize = 8 * 1024;
const LENGTHS: usize = 5;

/// The maximum memory of a compiled expression.
const MAX_PROGRAM: usize = 1_000_000;

/// Why a line is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NoText,
    NoMatch,
    TooCostly,
}

/// The result for some lines of a block.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The start of the next line in the block.
    pub end: usize,
    pub lines: usize,
    /// One line each: a record, or empty if it is blank or refused.
    pub json: Vec<u8>,
    /// The lines that are not records: their numbers from 0, first bytes and line feeds in the block, and the reasons.
    pub refused: Vec<(usize, usize, usize, Fault)>,
}

/// Turns lines into records.
pub struct Decoder {
    regex: String,
    max_steps: usize,
    /// Compiled for each line length class when first needed.
    compiled: [OnceLock<Regex>; LENGTHS],
    /// The group numbers of each key, at most one of which matches in a line, and the JSON before its text.
    captures: Vec<(Vec<usize>, Vec<u8>)>,
}

impl Decoder {
    /// A decoder for an expression whose named groups have these keys, in order.
    ///
    /// # Errors
    ///
    /// The fault of the expression or its groups.
    pub fn new(regex: &str, keys: &[String], max_steps: usize) -> Result<Self, String> {
        let first = compiled(regex, max_steps)?;
        let groups: Vec<usize> = named(&first).map(|(group, _)| group).collect();
        if groups.len() != keys.len() {
            return Err(format!("{} named groups for {} keys; expected equal numbers", groups.len(), keys.len()));
        }
        let mut captures: Vec<(&str, Vec<usize>)> = Vec::new();
        for (group, key) in groups.into_iter().zip(keys) {
            match captures.iter_mut().find(|(other, _)| other == key) {
                Some((_, groups)) => groups.push(group),
                None => captures.push((key, vec![group])),
            }
        }
        let captures = captures.into_iter().map(|(key, groups)| (groups, before(key))).collect();
        let compiled = [first.into(), OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new()];
        Ok(Self { regex: regex.to_owned(), max_steps, compiled, captures })
    }

    /// Matches the lines from an offset in a block, each with its line feed, until the records have this many bytes.
    pub fn decode(&self, block: &[u8], from: usize, max_bytes: usize) -> Chunk {
        let mut chunk = Chunk { end: from, ..Chunk::default() };
        while chunk.end < block.len() && chunk.json.len() < max_bytes {
            let start = chunk.end;
            let end = memchr::memchr(b'\n', &block[start..]).map_or(block.len(), |at| start + at);
            let before = chunk.json.len();
            if let Err(fault) = self.decode_line(&block[start..end], &mut chunk.json) {
                chunk.json.truncate(before);
                chunk.refused.push((chunk.lines, start, end, fault));
            }
            chunk.json.push(b'\n');
            chunk.lines += 1;
            chunk.end = end + 1;
        }
        chunk.end = chunk.end.min(block.len());
        chunk
    }

    fn decode_line(&self, line: &[u8], json: &mut Vec<u8>) -> Result<(), Fault> {
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            return Ok(());
        }
        let text = std::str::from_utf8(line).map_err(|_| Fault::NoText)?.trim_end_matches('\r');
        if text.len() > MAX_LINE_BYTES {
            return Err(Fault::TooCostly);
        }
        // A carriage return may stand for a line feed in a Kafka record, whose value would then differ.
        if memchr::memchr(b'\r', text.as_bytes()).is_some() {
            return Err(Fault::NoMatch);
        }
        match catch_unwind(AssertUnwindSafe(|| self.regex_for(text.len()).captures(text))) {
            Ok(Ok(Some(found))) => self.write(&found, json),
            Ok(Ok(None)) => Err(Fault::NoMatch),
            Ok(Err(_)) | Err(_) => Err(Fault::TooCostly),
        }
    }

    fn regex_for(&self, length: usize) -> &Regex {
        let mut at = 0;
        while at + 1 < LENGTHS && length > STEPS_FOR_BYTES << (2 * at) {
            at += 1;
        }
        let steps = (self.max_steps >> (2 * at)).max(1);
        self.compiled[at].get_or_init(|| compiled(&self.regex, steps).expect("it has been compiled before"))
    }

    fn write(&self, found: &Captures<'_, str>, json: &mut Vec<u8>) -> Result<(), Fault> {
        let start = json.len();
        json.push(b'{');
        for (groups, before) in &self.captures {
            let Some(text) = groups.iter().find_map(|&group| found.get(group)) else { continue };
            if json.len() > start + 1 {
                json.push(b',');
            }
            json.extend_from_slice(before);
            push_escaped(json, text.as_str());
            json.push(b'"');
            if json.len() - start > MAX_RECORD_BYTES {
                return Err(Fault::TooCostly);
            }
        }
        json.push(b'}');
        Ok(())
    }
}

pub fn compiled(regex: &str, max_steps: usize) -> Result<Regex, String> {
    RegexBuilder::new(regex)
        .oniguruma_mode(true)
        .backtrack_limit(max_steps)
        .max_prog_size(MAX_PROGRAM)
        .build()
        .map_err(|error| format!("it does not compile: {error}"))
}

pub fn named(regex: &Regex) -> impl Iterator<Item = (usize, &str)> {
    regex.capture_names().enumerate().filter_map(|(group, name)| name.map(|name| (group, name)))
}

/// The JSON before a capture's text.
fn before(key: &str) -> Vec<u8> {
    let mut bytes = vec![b'"'];
    push_escaped(&mut bytes, key);
    bytes.extend_from_slice(b"\":\"");
    bytes
}

fn push_escaped(json: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.extend_from_slice(&bytes[done..at]);
        done = at + 1;
        if byte >= b' ' {
            json.extend_from_slice(&[b'\\', byte]);
        } else {
            json.extend_from_slice(b"\\u00");
            json.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    json.extend_from_slice(&bytes[done..]);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::captures::captures;
    use super::super::expansion::expand;
    use super::*;

    fn decoder(pattern: &str, max_steps: usize) -> Decoder {
        let found = expand(pattern, &HashMap::new()).unwrap();
        let keys: Vec<_> = captures(&found).unwrap().into_iter().map(|(key, _)| key).collect();
        Decoder::new(&found.regex, &keys, max_steps).unwrap()
    }

    fn decoded(pattern: &str, block: &[u8]) -> (String, Vec<Fault>) {
        let chunk = decoder(pattern, 50_000).decode(block, 0, usize::MAX);
        let faults = chunk.refused.into_iter().map(|(_, _, _, fault)| fault).collect();
        (String::from_utf8(chunk.json).unwrap(), faults)
    }

    #[test]
    fn captures_become_strings() {
        let (json, faults) =
            decoded("%{WORD:verb} %{NUMBER:size}( %{DATA:rest})?$", b"GET 1.10\nPUT 2 a\"\\\x01\xc3\xa4\r\n \t\r\n");
        assert_eq!(
            json,
            "{\"verb\":\"GET\",\"size\":\"1.10\"}\n{\"verb\":\"PUT\",\"size\":\"2\",\"rest\":\"a\\\"\\\\\\u0001\u{e4}\"}\n\n"
        );
        assert_eq!(faults, []);
    }

    #[test]
    fn a_capture_may_be_empty() {
        assert_eq!(decoded("^a%{DATA:none}b", b"ab\n").0, "{\"none\":\"\"}\n");
    }

    #[test]
    fn lines_that_do_not_match_are_refused() {
        let (json, faults) = decoded("^%{INT:n}$", b"1\nx\n\xff\n2\r3\n4\r\r\n");
        assert_eq!(json, "{\"n\":\"1\"}\n\n\n\n{\"n\":\"4\"}\n");
        assert_eq!(faults, [Fault::NoMatch, Fault::NoText, Fault::NoMatch]);
    }

    #[test]
    fn places_are_those_of_the_block() {
        let chunk = decoder("^%{INT:n}$", 1_000).decode(b"1\nxy\n2\n", 2, usize::MAX);
        assert_eq!((chunk.end, chunk.lines), (7, 2));
        assert_eq!(chunk.refused, [(0, 2, 4, Fault::NoMatch)]);
    }

    #[test]
    fn hostile_lines_end() {
        let line = format!("{}!\n", "a".repeat(40));
        let nested = decoder("^(?<all>(?:a+(?<!x))+)$", 10_000).decode(line.as_bytes(), 0, usize::MAX);
        assert_eq!(nested.refused, [(0, 0, 41, Fault::TooCostly)]);
        let long = format!("{}\n", "1".repeat(MAX_LINE_BYTES + 1));
        assert_eq!(decoded("%{INT:n}", long.as_bytes()).1, [Fault::TooCostly]);
    }

    #[test]
    fn longer_lines_take_fewer_steps() {
        // Each byte of backtracking is a step.
        let decoder = decoder("^(?<a>.*)(?<=b)b(?<!c)", 100_000);
        let faults = |length: usize| {
            let line = format!("bb{}\n", "a".repeat(length));
            let found = decoder.decode(line.as_bytes(), 0, usize::MAX);
            found.refused.into_iter().map(|(_, _, _, fault)| fault).collect::<Vec<_>>()
        };
        assert_eq!(faults(STEPS_FOR_BYTES - 10), []);
        assert_eq!(faults(24_000), []);
        assert_eq!(faults(4 * STEPS_FOR_BYTES + 10), [Fault::TooCostly]);
        assert_eq!(faults(MAX_LINE_BYTES - 10), [Fault::TooCostly]);
        assert_eq!(decoded("^(?<a>b*)$", format!("{}\n", "b".repeat(MAX_LINE_BYTES)).as_bytes()).1, []);
    }

    #[test]
    fn a_record_has_a_longest_length() {
        let line = format!("{}\n", "\u{1}".repeat(MAX_LINE_BYTES));
        assert_eq!(decoded("^(?<a>(?<b>.*))$", line.as_bytes()).1, [Fault::TooCostly]);
    }

    #[test]
    fn chunks_end_after_so_many_bytes() {
        let decoder = decoder("%{INT:n}", 1_000);
        let chunk = decoder.decode(b"1\n2\n3", 0, 11);
        assert_eq!((chunk.end, chunk.lines), (4, 2));
        assert_eq!(decoder.decode(b"1\n2\n3", 4, 10).end, 5);
    }

    #[test]
    fn common_patterns_compile() {
        // Logstash makes lists of what these capture twice.
        let refused = ["BIND9", "CISCOFW106100", "CISCOFW313005"];
        assert_eq!(grok::patterns().len(), 320);
        for (name, _) in grok::patterns() {
            let found = expand(&format!("%{{{name}:all}}"), &HashMap::new()).and_then(|found| captures(&found));
            assert_eq!(found.is_err(), refused.contains(name), "{name}: {found:?}");
        }
    }

    #[test]
    fn alternatives_may_have_the_same_key() {
        let (json, _) = decoded("^(?:a%{INT:n}|b%{INT:n})(?<own>c?)$", b"a1\nb2c\n");
        assert_eq!(json, "{\"n\":\"1\",\"own\":\"\"}\n{\"n\":\"2\",\"own\":\"c\"}\n");
        assert!(Decoder::new("(?<a>b)", &[], 1).is_err());
    }
}
