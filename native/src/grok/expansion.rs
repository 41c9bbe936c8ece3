//! Expands a grok pattern to a regular expression, with its captures.
//!
//! The grammar of `%{NAME:key:type}` and the common patterns come from the crate `grok`.

use std::collections::HashMap;

use grok::parser::{GrokComponent, GrokPatternError, grok_split};

/// The prefix of the expansion's named groups. A pattern's own group names must not start with it.
pub const PREFIX: &str = "_grok_";

/// Deeper nesting of names is an error, as is a longer expansion: definitions can double it at each level.
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 1024 * 1024;

/// A pattern's expansion.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    pub regex: String,
    /// The key and type of the nth group whose name starts with `PREFIX`. The type may be empty.
    pub captures: Vec<(String, String)>,
}

/// Replaces each name in a pattern with its definition.
///
/// # Errors
///
/// The fault of the pattern or of a definition that it uses, and what was expected.
pub fn expand(pattern: &str, own: &HashMap<String, String>) -> Result<Pattern, String> {
    let mut expansion = Expansion {
        common: grok::patterns().iter().copied().collect(),
        own,
        within: Vec::new(),
        found: Pattern::default(),
    };
    expansion.add(pattern)?;
    Ok(expansion.found)
}

struct Expansion<'a> {
    common: HashMap<&'a str, &'a str>,
    own: &'a HashMap<String, String>,
    within: Vec<String>,
    found: Pattern,
}

impl Expansion<'_> {
    fn add(&mut self, pattern: &str) -> Result<(), String> {
        for component in grok_split(pattern) {
            match component {
                GrokComponent::RegularExpression { string, .. } => self.found.regex.push_str(string),
                GrokComponent::GrokPattern { name, alias, extract, definition, .. } => {
                    self.open_group(alias, extract)?;
                    self.add_named(name, definition)?;
                    self.found.regex.push(')');
                }
                GrokComponent::PatternError(error) => {
                    let what = match error {
                        GrokPatternError::InvalidCharacter(found) => format!("{found:?} is in a name"),
                        _ => "a name is incomplete".to_owned(),
                    };
                    return Err(format!(
                        "{}{what}; expected %{{NAME}}, %{{NAME:key}} or %{{NAME:key:type}}",
                        self.place()
                    ));
                }
            }
            if self.found.regex.len() > MAX_BYTES {
                return Err(format!("{}it expands to more than {MAX_BYTES} bytes; expected less", self.place()));
            }
        }
        Ok(())
    }

    fn open_group(&mut self, alias: &str, kind: &str) -> Result<(), String> {
        if alias.is_empty() {
            self.found.regex.push_str("(?:");
            return Ok(());
        }
        let key = key_of(alias);
        if key.is_empty() {
            return Err(format!("{}a capture is named {alias}; expected letters or digits", self.place()));
        }
        self.found.regex.push_str("(?<");
        self.found.regex.push_str(PREFIX);
        self.found.regex.push_str(&self.found.captures.len().to_string());
        self.found.regex.push('>');
        self.found.captures.push((key, kind.to_owned()));
        Ok(())
    }

    fn add_named(&mut self, name: &str, definition: &str) -> Result<(), String> {
        if self.within.iter().any(|outer| outer == name) {
            return Err(format!("{}{name} uses itself; expected a definition without itself", self.place()));
        }
        if self.within.len() == MAX_DEPTH {
            return Err(format!("{}definitions nested more than {MAX_DEPTH} deep", self.place()));
        }
        let definition = if definition.is_empty() {
            match self.own.get(name).map(String::as_str).or_else(|| self.common.get(name).copied()) {
                Some(found) => found.to_owned(),
                None => return Err(format!("{}there is no pattern {name}", self.place())),
            }
        } else {
            definition.to_owned()
        };
        self.within.push(name.to_owned());
        self.add(&definition)?;
        self.within.pop();
        Ok(())
    }

    /// The definition with an error; empty for the pattern itself.
    fn place(&self) -> String {
        self.within.last().map_or_else(String::new, |name| format!("in {name}, "))
    }
}

/// A capture's key: `[source][address]` is `source.address`, as in Logstash.
fn key_of(alias: &str) -> String {
    alias.split(['[', ']']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str, own: &[(&str, &str)]) -> Result<Pattern, String> {
        expand(pattern, &own.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect())
    }

    #[test]
    fn names_become_groups() {
        let found = expanded("%{A} %{B:b:int}", &[("A", "a+"), ("B", "%{A:[in][ner]}b")]).unwrap();
        assert_eq!(found.regex, "(?:a+) (?<_grok_0>(?<_grok_1>a+)b)");
        let captures = [("b", "int"), ("in.ner", "")];
        assert_eq!(found.captures, captures.map(|(key, kind)| (key.to_owned(), kind.to_owned())));
    }

    #[test]
    fn own_definitions_come_first() {
        assert_eq!(expanded("%{WORD}", &[("WORD", "w")]).unwrap().regex, "(?:w)");
        assert!(expanded("%{WORD}", &[]).unwrap().regex.contains("\\w+"));
    }

    #[test]
    fn endless_expansions_end() {
        assert!(expanded("%{A}", &[("A", "%{B}"), ("B", "%{A}")]).unwrap_err().contains("uses itself"));
        let doubling: Vec<_> = (0..60).map(|n| (format!("A{n}"), format!("%{{A{0}}}%{{A{0}}}", n + 1))).collect();
        let mut own: HashMap<_, _> = doubling.into_iter().collect();
        own.insert("A60".to_owned(), "x".to_owned());
        assert!(expand("%{A0}", &own).unwrap_err().contains("bytes"));
        let deep: HashMap<_, _> = (0..99).map(|n| (format!("A{n}"), format!("%{{A{}}}", n + 1))).collect();
        assert!(expand("%{A0}", &deep).unwrap_err().contains("definitions nested more than"));
    }

    #[test]
    fn faults_name_the_definition() {
        assert_eq!(expanded("%{A}", &[("A", "%{NOPE}")]).unwrap_err(), "in A, there is no pattern NOPE");
        assert!(expanded("%{A:b", &[]).unwrap_err().contains("expected %{NAME}"));
        assert!(expanded("%{WORD:[]}", &[]).unwrap_err().contains("expected letters or digits"));
    }
}
