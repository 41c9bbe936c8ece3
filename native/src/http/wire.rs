//! Connections to a server, plain or over TLS.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use rustls::ClientConfig;

use super::Timeouts;
use super::head::Origin;
use super::tls::Tls;

/// Whether to end a call that a signal has interrupted.
pub type GiveUp = fn() -> bool;

pub enum Connection {
    Plain(Wire),
    Tls(Box<Tls>),
}

/// The bytes that are sent and received.
pub struct Wire {
    socket: TcpStream,
    give_up: GiveUp,
}

impl Connection {
    /// # Errors
    ///
    /// No address of the server can be reached in time, or its certificate is not trusted.
    pub fn open(origin: &Origin, tls: &Arc<ClientConfig>, timeouts: Timeouts, give_up: GiveUp) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for address in (origin.host.as_str(), origin.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeouts.connect) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(timeouts.transfer))?;
                    socket.set_write_timeout(Some(timeouts.transfer))?;
                    let wire = Wire { socket, give_up };
                    let is_tls = origin.is_tls;
                    return Ok(if is_tls { Self::Tls(Tls::open(wire, tls, &origin.host)?) } else { Self::Plain(wire) });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Reads some bytes; none if the server has ended the connection.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(wire) => wire.read(room),
            Self::Tls(tls) => tls.read(room),
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(wire) => wire.write_all(bytes),
            Self::Tls(tls) => tls.write_all(bytes),
        }
    }

    /// Whether all that was received is read.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_empty(),
        }
    }

    /// Whether the server has neither ended the connection nor sent anything unasked.
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Plain(wire) => wire.is_idle(),
            Self::Tls(tls) => tls.is_idle(),
        }
    }
}

impl Wire {
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.unless_interrupted(|socket| socket.read(room))
    }

    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.unless_interrupted(|socket| socket.write(bytes))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    pub fn is_idle(&self) -> bool {
        let looked = self.socket.set_nonblocking(true).and_then(|()| self.socket.peek(&mut [0]));
        let is_quiet = looked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        is_quiet && self.socket.set_nonblocking(false).is_ok()
    }

    fn unless_interrupted(&mut self, mut work: impl FnMut(&mut TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match work(&mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted && !(self.give_up)() => {}
                done => return done,
            }
        }
    }
}
