"""Requests over HTTP, one connection each. Redirects are not followed: the token is for this server alone."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from typing import Any, Dict, Iterator, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from ._errors import DisdelError, Invalid, Unavailable, of_answer

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

#: Pauses before a request that changes nothing is made once more, in seconds.
_AGAIN = (0.2, 0.5, 1.0, 2.0)


class Transport:
    """A server, and how to reach it."""

    def __init__(
        self, url: str, token: Optional[str], timeout: float, cafile: Optional[str], insecure: bool
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise Invalid("%r is no address of a server" % url, kind="invalid", hint="http://127.0.0.1:7070")
        if parts.scheme == "http" and token and parts.hostname not in _LOOPBACK and not insecure:
            raise Invalid(
                "the token would reach %s in the clear" % parts.hostname,
                kind="invalid",
                hint="use https, or a port that ssh forwards; insecure=True says that it may",
            )
        self._host, self._port = parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._token, self._timeout = token, timeout
        self._tls = ssl.create_default_context(cafile=cafile) if parts.scheme == "https" else None
        self.url = url.rstrip("/")

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _ask(
        self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str], timeout: float
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(timeout)
        sent = dict(headers)
        if self._token:
            sent["Authorization"] = "Bearer " + self._token
        try:
            connection.request(method, self._base + path, body=body, headers=sent)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(
                "%s does not answer: %s" % (self.url, error), kind="unavailable", hint="disdel serve"
            ) from error

    def open(
        self, path: str, headers: Dict[str, str], timeout: float, method: str = "GET"
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """An answer of status 200 that is read as it comes; whoever asks closes the connection."""
        connection, answer = self._ask(method, path, None, headers, timeout)
        if answer.status != 200:
            try:
                raise of_answer(answer.status, answer.read())
            finally:
                connection.close()
        return connection, answer

    def body(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        again: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> bytearray:
        """The body of an answer. A request that may be repeated is, while the server does not answer."""
        repeat = method == "GET" if again is None else again
        for pause in _AGAIN if repeat else ():
            try:
                return self._bytes(method, path, body, headers or {}, timeout or self._timeout)
            except Unavailable as error:
                if error.status not in (0, 503):
                    raise
            time.sleep(pause)
        return self._bytes(method, path, body, headers or {}, timeout or self._timeout)

    def _bytes(
        self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str], timeout: float
    ) -> bytearray:
        connection, answer = self._ask(method, path, body, headers, timeout)
        try:
            data = _whole(answer)
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable("the answer has not come whole: %s" % error, kind="unavailable") from error
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise of_answer(answer.status, bytes(data))
        return data

    def json(
        self,
        method: str,
        path: str,
        document: Any = None,
        headers: Optional[Dict[str, str]] = None,
        *,
        again: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> Any:
        """The document that an answer is."""
        sent = dict(headers or {})
        body = None
        if document is not None:
            sent["Content-Type"] = "application/json"
            body = json.dumps(document).encode()
        data = self.body(method, path, body, sent, again=again, timeout=timeout)
        try:
            return json.loads(data)
        except ValueError as error:
            raise DisdelError("the server answered no JSON; is it a disdel server?") from error


def _whole(answer: http.client.HTTPResponse) -> bytearray:
    """The body in memory that may be written, so that arrays on it may be, too."""
    length = answer.length
    if length is None:
        return bytearray(answer.read())
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        n = answer.readinto(view[at:])
        if not n:
            raise http.client.IncompleteRead(bytes(data[:at]), length - at)
        at += n
    return data


def path_of(*parts: str, **query: Any) -> str:
    """The path of a route: its parts are quoted, and of the query what is None is left out."""
    text = "/api/v1/" + "/".join(quote(p, safe="") for p in parts)
    asked = {k: v for k, v in query.items() if v is not None}
    return text + "?" + urlencode(asked, doseq=True) if asked else text


class ServerEvent:
    """One event of a stream of server-sent events."""

    __slots__ = ("id", "kind", "data")

    def __init__(self, id: str, kind: str, data: str) -> None:
        self.id, self.kind, self.data = id, kind, data


def server_events(lines: Iterator[bytes]) -> Iterator[ServerEvent]:
    """The events of a stream, as the HTML standard has it: one that has not come whole is none."""
    last, kind = "", ""
    data: list[str] = []
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line == "":
            if data:
                yield ServerEvent(last, kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "id" and "\0" not in value:
            last = value
        elif field == "event":
            kind = value
        elif field == "data":
            data.append(value)
