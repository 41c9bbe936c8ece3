//! TLS over a connection.
//!
//! rustls works on buffers of this module, so that one call to the system receives many records: its own streams were
//! measured to receive 4 KiB at a time.

use std::io;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, RootCertStore};

use super::refused;
use super::wire::Wire;

const INCOMING_BYTES: usize = 128 * 1024;
/// What is encrypted at once: full records.
const SENT_BYTES: usize = 4 * 16_384;
/// What may be added to it [RFC 8446, 5.2: 256 bytes and a header a record].
const OUTGOING_BYTES: usize = SENT_BYTES + 4 * 512;

pub struct Tls {
    wire: Wire,
    session: UnbufferedClientConnection,
    /// Received and not yet decrypted: from `start` to `end`.
    incoming: Vec<u8>,
    start: usize,
    end: usize,
    /// To be sent: the first `pending` bytes.
    outgoing: Vec<u8>,
    pending: usize,
    /// Decrypted, and not read yet from `read` on.
    received: Vec<u8>,
    read: usize,
}

/// What a session needs next.
#[derive(PartialEq)]
enum Next {
    /// It can go on.
    Again,
    /// More bytes from the server.
    Bytes,
    /// The same, or bytes to send.
    Traffic,
    /// Nothing: the server has ended the connection.
    Closed,
}

/// The rules for connections: the certificates of a file are trusted, and no others.
///
/// # Errors
///
/// The file cannot be read, or has no certificate.
pub fn trusting(ca_file: &str) -> io::Result<Arc<ClientConfig>> {
    let mut trusted = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(ca_file).map_err(io::Error::other)?;
    let (added, _) = trusted.add_parsable_certificates(certificates.filter_map(Result::ok));
    if added == 0 {
        return Err(refused("the file has no certificate"));
    }
    let rules = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(Arc::new(rules.with_root_certificates(trusted).with_no_client_auth()))
}

impl Tls {
    /// # Errors
    ///
    /// The server's certificate is not trusted, or the connection broke.
    pub fn open(wire: Wire, rules: &Arc<ClientConfig>, host: &str) -> io::Result<Box<Self>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = UnbufferedClientConnection::new(Arc::clone(rules), name).map_err(io::Error::other)?;
        let (incoming, outgoing) = (vec![0; INCOMING_BYTES], vec![0; OUTGOING_BYTES]);
        let (start, end, pending, received, read) = (0, 0, 0, Vec::new(), 0);
        let mut made = Box::new(Self { wire, session, incoming, start, end, outgoing, pending, received, read });
        loop {
            match made.advance(&mut [])?.1 {
                Next::Again => {}
                Next::Bytes if made.receive()? => {}
                Next::Traffic => return Ok(made),
                Next::Bytes | Next::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if !self.is_empty() {
            let held = &self.received[self.read..];
            let taken = held.len().min(room.len());
            room[..taken].copy_from_slice(&held[..taken]);
            self.read += taken;
            return Ok(taken);
        }
        loop {
            let (taken, next) = self.advance(room)?;
            if taken > 0 {
                return Ok(taken);
            }
            let is_over = match next {
                Next::Again => false,
                Next::Bytes | Next::Traffic => !self.receive()?,
                Next::Closed => true,
            };
            if is_over {
                return Ok(0);
            }
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(SENT_BYTES) {
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut self.incoming[self.start..self.end]);
            let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else {
                return Err(refused("the server sends something before the request ends"));
            };
            let length = traffic.encrypt(piece, &mut self.outgoing).map_err(io::Error::other)?;
            self.start += discard;
            self.wire.write_all(&self.outgoing[..length])?;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.read == self.received.len()
    }

    pub fn is_idle(&self) -> bool {
        self.is_empty() && self.start == self.end && self.wire.is_idle()
    }

    /// Does what the session needs next, except to receive; how many decrypted bytes it put into the room, too.
    fn advance(&mut self, room: &mut [u8]) -> io::Result<(usize, Next)> {
        let mut taken = 0;
        let UnbufferedStatus { mut discard, state } =
            self.session.process_tls_records(&mut self.incoming[self.start..self.end]);
        let next = match state.map_err(io::Error::other)? {
            ConnectionState::EncodeTlsData(mut data) => {
                match data.encode(&mut self.outgoing[self.pending..]) {
                    Ok(length) => self.pending += length,
                    Err(EncodeError::InsufficientSize(_)) => return Err(refused("the handshake is too long")),
                    Err(error) => return Err(io::Error::other(error)),
                }
                Next::Again
            }
            ConnectionState::TransmitTlsData(data) => {
                self.wire.write_all(&self.outgoing[..self.pending])?;
                self.pending = 0;
                data.done();
                Next::Again
            }
            ConnectionState::ReadTraffic(mut traffic) => {
                self.received.clear();
                self.read = 0;
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(io::Error::other)?;
                    discard += record.discard;
                    let fits = record.payload.len().min(room.len() - taken);
                    room[taken..taken + fits].copy_from_slice(&record.payload[..fits]);
                    taken += fits;
                    self.received.extend_from_slice(&record.payload[fits..]);
                }
                Next::Again
            }
            ConnectionState::BlockedHandshake => Next::Bytes,
            ConnectionState::WriteTraffic(_) => Next::Traffic,
            ConnectionState::PeerClosed | ConnectionState::Closed => Next::Closed,
            _ => return Err(refused("the session is in an unknown state")),
        };
        self.start += discard;
        Ok((taken, next))
    }

    /// Receives more bytes; false if the server has ended the connection.
    fn receive(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.incoming.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.incoming.len() {
            return Err(refused("a record is too long"));
        }
        let received = self.wire.read(&mut self.incoming[self.end..])?;
        self.end += received;
        Ok(received > 0)
    }
}
