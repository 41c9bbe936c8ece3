"""Says what is wrong with the certificate of a broker: librdkafka does not tell an expired one from another host's."""

import re
import socket
import ssl
from collections.abc import Mapping

_ADDRESS = re.compile(r"ssl://(?P<host>[^/\s]+):(?P<port>[0-9]+)/")
PROBE_SECONDS = 3.0


def fault_of(text: str, properties: Mapping[str, object]) -> str:
    """Why the certificate of the broker that an error names is refused; empty if that cannot be told.

    Args:
        text: What librdkafka said, which has the address.
        properties: Those of the cluster. The file of its authorities is trusted, or what the machine trusts.
    """
    found = _ADDRESS.search(text)
    if found is None:
        return ""
    host, port = found["host"].strip("[]"), int(found["port"])
    try:
        trusted = ssl.create_default_context(cafile=str(properties.get("ssl.ca.location") or "") or None)
        with socket.create_connection((host, port), timeout=PROBE_SECONDS) as plain:
            plain.settimeout(PROBE_SECONDS)
            with trusted.wrap_socket(plain, server_hostname=host):
                return ""
    except ssl.SSLCertVerificationError as exc:
        return str(exc.verify_message).rstrip(".")
    except (OSError, ValueError):
        return ""
