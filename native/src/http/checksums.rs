//! The checksums that S3 sends with an object's bytes.

use std::io;

use crc_fast::{CrcAlgorithm, Digest};
use ring::digest;

use super::refused;

const HEADER: &str = "x-amz-checksum-";
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What a response's header says about its body, and the same of what has arrived so far.
#[derive(Default)]
pub struct Checksums(Vec<Checksum>);

struct Checksum {
    header: String,
    expected: String,
    found: Found,
}

enum Found {
    /// With its length in bytes.
    Crc(Box<Digest>, usize),
    Sha(Box<digest::Context>),
}

impl Checksums {
    /// Those in a header that are over the body, and of a kind known here.
    pub fn of(headers: &[(String, String)]) -> Self {
        let found = headers.iter().filter_map(|(header, expected)| {
            // One with a dash is over the checksums of an object's parts, not over its content [S3 API].
            let found = Found::named(header.strip_prefix(HEADER)?).filter(|_| !expected.contains('-'))?;
            Some(Checksum { header: header.clone(), expected: expected.clone(), found })
        });
        Self(found.collect())
    }

    pub fn update(&mut self, bytes: &[u8]) {
        for each in &mut self.0 {
            match &mut each.found {
                Found::Crc(digest, _) => digest.update(bytes),
                Found::Sha(context) => context.update(bytes),
            }
        }
    }

    /// The names of the headers that were verified.
    ///
    /// # Errors
    ///
    /// One of them differs.
    pub fn verify(&mut self) -> io::Result<Vec<String>> {
        self.0.drain(..).map(Checksum::verified).collect()
    }
}

impl Checksum {
    fn verified(self) -> io::Result<String> {
        let is_equal = match self.found {
            Found::Crc(digest, bytes) => base64(&digest.finalize().to_be_bytes()[8 - bytes..]) == self.expected,
            Found::Sha(context) => base64(context.finish().as_ref()) == self.expected,
        };
        is_equal.then_some(self.header).ok_or_else(|| refused("the body does not have its checksum"))
    }
}

impl Found {
    fn named(name: &str) -> Option<Self> {
        let crc = |algorithm, bytes| Self::Crc(Box::new(Digest::new(algorithm)), bytes);
        let sha = |algorithm| Self::Sha(Box::new(digest::Context::new(algorithm)));
        Some(match name {
            "crc32" => crc(CrcAlgorithm::Crc32IsoHdlc, 4),
            "crc32c" => crc(CrcAlgorithm::Crc32Iscsi, 4),
            "crc64nvme" => crc(CrcAlgorithm::Crc64Nvme, 8),
            "sha1" => sha(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            "sha256" => sha(&digest::SHA256),
            "sha512" => sha(&digest::SHA512),
            _ => return None,
        })
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0, |sum, at| sum << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[number >> (18 - 6 * at) & 63];
            text.push(if at > three.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `123456789`, the check value of each CRC's catalogue entry, and what `openssl dgst` says.
    const KNOWN: [(&str, &str); 6] = [
        ("crc32", "y/Q5Jg=="),
        ("crc32c", "4waSgw=="),
        ("crc64nvme", "rosUhgp5mIg="),
        ("sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
        ("sha512", "2eZ2LdHI6vbWGzxhkvxAjU1tXxF20MKRabwk5xw/J0rSf81YEbMT1oH35V7ALXPUmclUVba1u1A6z1dPuo/+hQ=="),
    ];

    fn verified(name: &str, value: &str, pieces: &[&[u8]]) -> io::Result<Vec<String>> {
        let mut checksums = Checksums::of(&[(format!("{HEADER}{name}"), value.to_owned())]);
        for each in pieces {
            checksums.update(each);
        }
        checksums.verify()
    }

    #[test]
    fn each_kind_is_verified() {
        for (name, value) in KNOWN {
            assert_eq!(verified(name, value, &[b"1234", b"56789"]).unwrap(), [format!("{HEADER}{name}")], "{name}");
            assert!(verified(name, value, &[b"123456788"]).is_err(), "{name}");
            assert!(verified(name, value, &[]).is_err(), "{name}");
            assert!(verified(name, &value.to_lowercase(), &[b"123456789"]).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_not_over_the_body_is_passed_over() {
        for (name, value) in [("crc32", "AAAAAA==-3"), ("type", "FULL_OBJECT"), ("xxhash3", "AAAAAAAAAAA=")] {
            assert!(verified(name, value, &[b"1"]).unwrap().is_empty());
        }
    }
}
