//! The headers of requests and responses.

use std::io;

use memchr::memmem;

use super::{Request, refused};

const MAX_HEADERS: usize = 100;

/// The server of a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    pub is_tls: bool,
    /// In lower case.
    pub host: String,
    pub port: u16,
}

/// The header of a response whose body has a length.
pub struct Head {
    pub status: u16,
    /// Names in lower case. A repeated one is a list, and so neither a number nor a checksum.
    pub headers: Vec<(String, String)>,
    pub length: usize,
    /// Whether the connection can be used again.
    pub is_kept: bool,
}

/// The server and the bytes of a request's header.
///
/// # Errors
///
/// The URL is not one for this client, or a header has a character that may end it.
pub fn of_request(request: &Request<'_>) -> io::Result<(Origin, Vec<u8>)> {
    let (origin, authority, target) = parts_of(request.url).ok_or_else(|| unfit("the URL is not one of a server"))?;
    let mut lines = format!("{} {target} HTTP/1.1\r\nhost: {authority}\r\naccept-encoding: identity", request.method);
    for (name, value) in request.headers {
        lines.push_str("\r\n");
        lines.push_str(name);
        lines.push_str(": ");
        lines.push_str(value);
    }
    let has_one_line_each = lines.split("\r\n").all(|line| line.bytes().all(|each| (b' '..=b'~').contains(&each)));
    let is_one_request = lines.split("\r\n").count() == request.headers.len() + 3 && !target.contains(' ');
    if !(has_one_line_each && is_one_request) {
        return Err(unfit("a header has a character that may end it"));
    }
    lines.push_str("\r\n\r\n");
    Ok((origin, lines.into_bytes()))
}

/// The server, the `Host` header and the target of a URL.
fn parts_of(url: &str) -> Option<(Origin, String, &str)> {
    let (is_tls, rest) = match url.split_once("://")? {
        ("https", rest) => (true, rest),
        ("http", rest) => (false, rest),
        _ => return None,
    };
    let (authority, target) = rest.split_at(rest.find('/')?);
    if authority.contains(['@', '?', '#']) || target.contains('#') {
        return None;
    }
    let usual = if is_tls { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    let host = host.to_ascii_lowercase();
    let authority = if port == usual { host.clone() } else { format!("{host}:{port}") };
    let host = host.strip_prefix('[').and_then(|each| each.strip_suffix(']')).unwrap_or(&host).to_owned();
    (!host.is_empty()).then_some((Origin { is_tls, host, port }, authority, target))
}

/// Where a response's header ends; None if more of it has to arrive.
pub fn end_of(received: &[u8]) -> Option<usize> {
    memmem::find(received, b"\r\n\r\n").map(|at| at + 4)
}

impl Head {
    /// # Errors
    ///
    /// It is not the header of a response whose body has a length.
    pub fn parse(received: &[u8]) -> io::Result<Self> {
        Self::parsed(received).ok_or_else(|| refused("the response has no header with a length"))
    }

    fn parsed(received: &[u8]) -> Option<Self> {
        let text = str::from_utf8(received.strip_suffix(b"\r\n\r\n")?).ok()?;
        let mut lines = text.split("\r\n");
        let (status, rest) = lines.next()?.strip_prefix("HTTP/1.1 ")?.split_at_checked(3)?;
        if !(rest.is_empty() || rest.starts_with(' ')) || !status.bytes().all(|each| each.is_ascii_digit()) {
            return None;
        }
        let status = status.parse().ok().filter(|each| *each >= 200)?;
        let mut headers: Vec<(String, String)> = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':')?;
            let is_name = !name.is_empty() && name.bytes().all(|each| each.is_ascii_graphic());
            if !is_name || value.contains(['\r', '\n', '\0']) || headers.len() == MAX_HEADERS {
                return None;
            }
            let (name, value) = (name.to_ascii_lowercase(), value.trim_matches([' ', '\t']));
            match headers.iter_mut().find(|(known, _)| *known == name) {
                Some((_, list)) => *list = format!("{list}, {value}"),
                None => headers.push((name, value.to_owned())),
            }
        }
        let found = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        // A `Content-Encoding` was stored with the object; the bytes arrive as stored.
        let length = match (found("content-length"), found("transfer-encoding")) {
            (Some(length), None) if length.bytes().all(|each| each.is_ascii_digit()) => length.parse().ok()?,
            (None, None) if status == 204 => 0,
            _ => return None,
        };
        let is_kept = !found("connection").is_some_and(|each| each.to_ascii_lowercase().contains("close"));
        Some(Self { status, headers, length, is_kept })
    }
}

fn unfit(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str, value: &str) -> io::Result<(Origin, Vec<u8>)> {
        let headers = [("If-Match".to_owned(), value.to_owned())];
        of_request(&Request { method: "GET", url, headers: &headers, body: b"", max_bytes: 0 })
    }

    #[test]
    fn hosts_are_spelled_as_they_are_signed() {
        for (url, host, port) in [
            ("http://LOCALHOST:80/b/k", "localhost", 80),
            ("https://h:443/b/k", "h", 443),
            ("https://h:80/b/k", "h:80", 80),
            ("http://[::1]:9000/b/k", "[::1]:9000", 9000),
            ("http://[::1]/b/k", "[::1]", 80),
        ] {
            let (origin, bytes) = asked(url, "a").unwrap();
            assert_eq!(origin.port, port);
            assert!(String::from_utf8(bytes).unwrap().contains(&format!("\r\nhost: {host}\r\n")), "{url}");
        }
    }

    #[test]
    fn keys_are_sent_as_they_are() {
        for target in ["/b//a/../.%20%3F//", "/b/%41?x-id=GetObject", "/"] {
            let (_, bytes) = asked(&format!("https://h{target}"), "a").unwrap();
            assert!(bytes.starts_with(format!("GET {target} HTTP/1.1\r\n").as_bytes()));
        }
    }

    #[test]
    fn nothing_ends_a_header_early() {
        for value in ["\"a\"\r\nX-Other: b", "\"a\"\n", "\0", "ü", "a\r\n\r\n"] {
            assert!(asked("https://h/k", value).is_err());
        }
        for url in ["https://h", "ftp://h/k", "https:///k", "http://user:word@h/k", "https://h:x/k", "https://h/a b"] {
            assert!(asked(url, "a").is_err(), "{url}");
        }
    }

    #[test]
    fn a_header_counts_only_if_it_is_whole_and_tells_a_length() {
        let whole = b"HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: 2048\r\n\r\n";
        for end in 0..whole.len() {
            assert!(end_of(&whole[..end]).is_none());
        }
        assert_eq!(end_of(whole), Some(whole.len()));
        let head = Head::parse(whole).unwrap();
        assert_eq!((head.status, head.length, head.is_kept), (206, 2048, true));
        assert_eq!(head.headers[0], ("etag".to_owned(), "\"a\"".to_owned()));
        for refused in [
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX: a\r\n b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 1\r\n\r\n",
            "GARBAGE\r\n\r\n",
        ] {
            assert!(Head::parse(refused.as_bytes()).is_err(), "{refused}");
        }
        let many = "X: \r\n".repeat(101);
        assert!(Head::parse(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n{many}\r\n").as_bytes()).is_ok());
        let many = (0..100).map(|each| format!("X-{each}: \r\n")).collect::<Vec<_>>().concat();
        assert!(Head::parse(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n{many}\r\n").as_bytes()).is_err());
    }
}
