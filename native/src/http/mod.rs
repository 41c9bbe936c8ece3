//! A blocking client of HTTP/1.1 for objects that are held in memory: a request is sent once, and its response counts
//! only if all of it arrived.
//!
//! Whatever the client does not expect is a failure: it follows no redirect, and reads no body in chunks. The caller has
//! another client for that.

mod checksums;
mod head;
mod tls;
mod wire;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;

use checksums::Checksums;
use head::{Head, Origin};
use wire::Connection;

pub use wire::GiveUp;

/// At most as long as other clients accept a response's header.
const MAX_HEAD_BYTES: usize = 65_536;
/// What is checked at once, while the processor's cache still has it.
const PIECE_BYTES: usize = 256 * 1024;

/// A request. Its header has no `Host`, which the URL has, and no `Accept-Encoding`.
pub struct Request<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
    /// The longest body that the response may have, unless it is an error.
    pub max_bytes: usize,
}

/// How long a connection may take to be made, and to send or receive anything.
#[derive(Clone, Copy)]
pub struct Timeouts {
    pub connect: Duration,
    pub transfer: Duration,
}

/// Safe to share between threads, but not between processes.
pub struct Client {
    tls: Arc<ClientConfig>,
    timeouts: Timeouts,
    give_up: GiveUp,
    /// Connections that no request is using, and how many of them are kept.
    idle: Mutex<Vec<(Origin, Connection)>>,
    max_idle: usize,
}

/// A response whose body is still to be read.
pub struct Answer<'a> {
    client: &'a Client,
    origin: Origin,
    connection: Connection,
    head: Head,
    /// The beginning of the body.
    early: Vec<u8>,
    checksums: Checksums,
}

impl Client {
    /// # Arguments
    ///
    /// * `ca_file` - The certificates to trust, as PEM.
    /// * `give_up` - Whether to end a call that a signal interrupted.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no certificate.
    pub fn new(ca_file: &str, timeouts: Timeouts, max_idle: usize, give_up: GiveUp) -> io::Result<Self> {
        Ok(Self { tls: tls::trusting(ca_file)?, timeouts, give_up, idle: Mutex::default(), max_idle })
    }

    /// Sends a request once, and reads the header of its response.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the request cannot be sent; else there is no connection, it broke or timed
    /// out, or the response is not one that this client accepts.
    pub fn send(&self, request: &Request<'_>) -> io::Result<Answer<'_>> {
        let (origin, sent) = head::of_request(request)?;
        let mut connection = match self.idle_connection(&origin) {
            Some(found) => found,
            None => Connection::open(&origin, &self.tls, self.timeouts, self.give_up)?,
        };
        connection.write_all(&sent)?;
        connection.write_all(request.body)?;
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = head::end_of(&received) {
                break end;
            }
            if received.len() > MAX_HEAD_BYTES {
                return Err(refused("the response's header is too long"));
            }
            let from = received.len();
            received.resize(from + PIECE_BYTES / 16, 0);
            let read = connection.read(&mut received[from..])?;
            received.truncate(from + read);
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head = Head::parse(&received[..end])?;
        let early = received.split_off(end);
        // An error describes itself, however little was asked for.
        let most = if head.status < 300 { request.max_bytes } else { request.max_bytes.max(MAX_HEAD_BYTES) };
        if head.length > most || early.len() > head.length {
            return Err(refused("the response's body is longer than asked for"));
        }
        let is_verified = request.method == "GET" && head.status < 300;
        let checksums = if is_verified { Checksums::of(&head.headers) } else { Checksums::default() };
        Ok(Answer { client: self, origin, connection, head, early, checksums })
    }

    fn idle_connection(&self, origin: &Origin) -> Option<Connection> {
        loop {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let place = idle.iter().rposition(|(each, _)| each == origin)?;
            let (_, connection) = idle.remove(place);
            drop(idle);
            if connection.is_idle() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, origin: Origin, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= self.max_idle {
            idle.remove(0);
        }
        idle.push((origin, connection));
    }
}

impl Answer<'_> {
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The length of the body in bytes.
    pub fn length(&self) -> usize {
        self.head.length
    }

    /// Reads the whole body, and verifies it by each checksum in the header that this module knows.
    ///
    /// Returns the other headers, their names in lower case.
    ///
    /// # Errors
    ///
    /// The connection broke or timed out, or a checksum differs.
    ///
    /// # Panics
    ///
    /// The room is not as long as the body.
    pub fn read_body(mut self, room: &mut [u8]) -> io::Result<Vec<(String, String)>> {
        let (start, rest) = room.split_at_mut(self.early.len());
        start.copy_from_slice(&self.early);
        self.checksums.update(start);
        for piece in rest.chunks_mut(PIECE_BYTES) {
            let mut read = 0;
            while read < piece.len() {
                match self.connection.read(&mut piece[read..])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => read += more,
                }
            }
            self.checksums.update(piece);
        }
        let names = self.checksums.verify()?;
        if self.head.is_kept && self.connection.is_empty() {
            self.client.keep(self.origin, self.connection);
        }
        self.head.headers.retain(|(name, _)| !names.contains(name));
        Ok(self.head.headers)
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
