"""A Kafka broker of tests with listeners for each way to connect, and rights that it enforces."""

from pathlib import Path

from tests.support.kafka_broker import PASSWORD, USER, KafkaBroker
from tests.support.server_process import free_ports
from tests.support.tls import Authority

_LOGIN = "org.apache.kafka.common.security"

LISTENERS = {
    "TLS": "SSL",
    "TLSUSER": "SASL_SSL",
    "TOKEN": "SASL_SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}
"""The protocol of each further listener. No client accepts the certificates of `EXPIRED` and `ELSEWHERE`."""


class SecureBroker(KafkaBroker):
    """A broker with TLS. Who comes without credentials may do everything; users may do what rights allow them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        self.authority = Authority.make(folder, "authority")
        self.stranger = Authority.make(folder, "stranger")
        host = "127.0.0.1"
        right = self.authority.server("right", host)
        self._files = {
            "TLS": right,
            "TLSUSER": right,
            "TOKEN": right,
            "EXPIRED": self.authority.server("expired", host, days=(-3, -1)),
            "ELSEWHERE": self.authority.server("elsewhere", "broker.example.org"),
        }

    def properties_of(self, listener: str, **more: str) -> dict[str, str]:
        """The properties of a client of a listener that trusts the authority."""
        given = {
            "bootstrap.servers": f"127.0.0.1:{self.ports[listener]}",
            "security.protocol": LISTENERS[listener],
            "ssl.ca.location": str(self.authority.file),
        }
        return {**given, **{key.replace("_", "."): value for key, value in more.items()}}

    def properties(self) -> dict[str, object]:
        found = super().properties()
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
        found["listeners"] = f"{found['listeners']},{listeners}"
        found["listener.security.protocol.map"] = f"{found['listener.security.protocol.map']},{protocols}"
        found["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        found["super.users"] = "User:ANONYMOUS"
        for name, file in self._files.items():
            prefix = f"listener.name.{name.lower()}"
            found[f"{prefix}.ssl.keystore.type"] = "PEM"
            found[f"{prefix}.ssl.keystore.location"] = file
        plain = f'{_LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        found["listener.name.tlsuser.plain.sasl.jaas.config"] = plain
        found["listener.name.token.sasl.enabled.mechanisms"] = "OAUTHBEARER"
        bearer = f'{_LOGIN}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        found["listener.name.token.oauthbearer.sasl.jaas.config"] = bearer
        return found
