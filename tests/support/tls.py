"""Certificates of tests: an authority of their own, and servers that are right, expired or somewhere else."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from http.server import HTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """An authority that signs certificates into a folder."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path, name: str) -> "Authority":
        """Make an authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        built = _builder(subject, subject, key, days=(-1, 30)).add_extension(constraints, critical=True)
        return cls(folder, name, key, built.sign(key, hashes.SHA256()))

    @property
    def file(self) -> Path:
        """Its certificate, which clients trust."""
        path = self.folder / f"{self.name}.pem"
        path.write_bytes(_pem(self.certificate))
        return path

    @property
    def java_file(self) -> Path:
        """The same, as Java takes it; without a password."""
        path = self.folder / f"{self.name}.p12"
        trusted = [pkcs12.PKCS12Certificate(self.certificate, self.name.encode())]
        path.write_bytes(pkcs12.serialize_java_truststore(trusted, serialization.NoEncryption()))
        return path

    def server(self, name: str, host: str, days: tuple[int, int] = (-1, 30)) -> Path:
        """The key and the certificate of a server in one file, as a broker takes them.

        Args:
            name: Of the file.
            host: An address, or a name.
            days: From when until when it is valid, counted from now.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        is_address = host.replace(".", "").isdecimal()
        found = x509.IPAddress(ipaddress.ip_address(host)) if is_address else x509.DNSName(host)
        built = _builder(_name(host), self.certificate.subject, key, days=days)
        built = built.add_extension(x509.SubjectAlternativeName([found]), critical=False)
        signed = built.sign(self.key, hashes.SHA256())
        path = self.folder / f"{name}.pem"
        kind = serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
        path.write_bytes(secret + _pem(signed) + _pem(self.certificate))
        return path

    def secure(self, server: HTTPServer) -> ssl.SSLContext:
        """Have a server on this machine speak TLS; with what, so that it can have another certificate later."""
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self.server("right", "127.0.0.1"))
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        return tls


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: tuple[int, int]
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
