"""pyiceberg's client of REST catalogs, which sends each request once and waits for no answer for ever."""

from functools import partial

from pyiceberg.catalog.rest import RestCatalog
from requests import Session
from requests.adapters import HTTPAdapter

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0


class PatientRestCatalog(RestCatalog):
    """A client with time-outs, and without retries: an answer that was lost means that nothing is known of a commit.

    It follows no redirect. On some of them the client would send a commit again as a GET, whose answer looks like that
    of a commit.
    """

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)  # the first that is done to a session, before it is used for a token
        session.max_redirects = 0
        session.request = partial(session.request, timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS))  # type: ignore[method-assign]

    def _create_session(self) -> Session:
        session = super()._create_session()
        for adapter in session.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = adapter.max_retries.new(total=0, connect=0, read=0, redirect=0, status=0, other=0)
        return session
