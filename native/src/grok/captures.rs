//! A pattern's captures: the named groups of its expression, and which of them a line may have at once.

use std::collections::HashSet;

use fancy_regex::Expr;
use fancy_regex::internal::{FLAG_ONIGURUMA_MODE, FLAG_UNICODE};

use super::decoder::{compiled, named};
use super::expansion::{PREFIX, Pattern};

/// The keys and types of the named groups in an expanded pattern, in order.
///
/// A group named in the pattern itself is a capture with that name, without a type. Groups have the same key only if no
/// line can have both.
///
/// # Errors
///
/// The pattern does not compile or captures nothing, or its captures have contradictory names or types.
pub fn captures(pattern: &Pattern) -> Result<Vec<(String, String)>, String> {
    let regex = compiled(&pattern.regex, 1)?;
    let mut found: Vec<(String, String)> = Vec::new();
    let mut keys: Vec<Option<String>> = vec![None; regex.captures_len()];
    for (group, name) in named(&regex) {
        let number = name.strip_prefix(PREFIX).and_then(|number| number.parse::<usize>().ok());
        let (key, kind) = match number {
            Some(number) => pattern.captures.get(number).cloned().ok_or(format!("{name} is not a valid group name"))?,
            None => (name.to_owned(), String::new()),
        };
        if let Some((_, other)) = found.iter().find(|(other, kind_of)| *other == key && *kind_of != kind) {
            return Err(format!("{key} is captured as {other:?} and as {kind:?}; expected one type"));
        }
        keys[group] = Some(key.clone());
        found.push((key, kind));
    }
    if found.is_empty() {
        return Err("it captures nothing; expected a name with a key, as in %{WORD:verb}".to_owned());
    }
    let tree = Expr::parse_tree_with_flags(&pattern.regex, FLAG_ONIGURUMA_MODE | FLAG_UNICODE)
        .map_err(|error| format!("it does not compile: {error}"))?;
    Walk { keys: &keys, groups: 0 }.keys_of(&tree.expr)?;
    Ok(found)
}

/// A walk through an expression that visits its groups in order.
struct Walk<'a> {
    keys: &'a [Option<String>],
    groups: usize,
}

impl<'a> Walk<'a> {
    /// The keys that a line may get from this part of the expression.
    fn keys_of(&mut self, expr: &Expr) -> Result<HashSet<&'a str>, String> {
        let mut found = HashSet::new();
        if matches!(expr, Expr::Group(_)) {
            self.groups += 1;
            found.extend(self.keys.get(self.groups).and_then(Option::as_deref));
        }
        let first = self.groups;
        for child in expr.children_iter() {
            for key in self.keys_of(child)? {
                if !found.insert(key) && !matches!(expr, Expr::Alt(_)) {
                    return Err(twice(key));
                }
            }
        }
        if let Expr::Repeat { hi: 2.., .. } = expr {
            let mut once = HashSet::new();
            let mut within = self.keys[first + 1..=self.groups].iter().flatten();
            if let Some(key) = within.find(|key| !once.insert(key.as_str())) {
                return Err(twice(key));
            }
        }
        Ok(found)
    }
}

fn twice(key: &str) -> String {
    format!("two captures of a line are named {key}; expected different names, except in alternatives")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(regex: &str) -> Result<Vec<(String, String)>, String> {
        let captures = vec![("key".to_owned(), "int".to_owned()), ("key".to_owned(), String::new())];
        captures_of(regex, captures)
    }

    fn captures_of(regex: &str, captures: Vec<(String, String)>) -> Result<Vec<(String, String)>, String> {
        super::captures(&Pattern { regex: regex.to_owned(), captures })
    }

    #[test]
    fn groups_may_have_names_of_their_own() {
        let keys = found("(?<_grok_0>a)(?<own>b)(c)").unwrap();
        assert_eq!(keys, [("key", "int"), ("own", "")].map(|(key, kind)| (key.to_owned(), kind.to_owned())));
        assert!(found("(?<_grok_2>a)").unwrap_err().contains("not a valid group name"));
        assert!(found("(a)").unwrap_err().contains("captures nothing"));
        assert!(found("(").unwrap_err().contains("does not compile"));
        assert!(found("(?<_grok_0>a)|(?<_grok_1>b)").unwrap_err().contains("expected one type"));
    }

    #[test]
    fn a_line_has_one_capture_of_a_name() {
        assert_eq!(found("(?:(?<a>1)(x)|(?:(?<a>2)|(?<a>3)?))(?<b>4)").unwrap().len(), 4);
        for regex in [
            "(?<a>1)(?<a>2)",
            "(?<a>1(?<a>2))",
            "(?:(?<a>1)|(?<a>2))(x(?<a>3))?",
            "(?:(?<a>1)|(?<a>2))+",
            "(?<a>1)(?=(?<a>2))",
        ] {
            assert!(found(regex).unwrap_err().contains("two captures of a line are named a"), "{regex}");
        }
    }
}
