"""The HELLO handshake: each side proves its name and that it knows the lab's secret. Pure: nonces are passed in.

    caller                                    host (a broker)
    HELLO {name, lab, nonce}          -->
                                      <--     HELLO {name, lab, nonce, proof}
    HELLO {proof}                     -->     and the caller's messages may follow at once

A proof is an HMAC-SHA256 with the lab's secret over the sender's role, both nonces, both names and the lab. So a
recorded proof is worth nothing on another connection, and a caller cannot send the host's proof back as its own.
A node that knows the secret can take the name of any node of the lab.
"""

import hmac
import json
import os
from dataclasses import dataclass
from typing import Any

from nodes.protocol.wire import HEADER_SIZE, Kind, Message, WireError, decode, encode
from nodes.runtime.config import NodeConfig

MAX_NAME = 128
MAX_HELLO_BYTES = 4096  # of the first one
_NONCE_BYTES, _PROOF_BYTES = 16, 32
PROOF_HELLO_BYTES = HEADER_SIZE + len(json.dumps({"proof": "00" * _PROOF_BYTES}))
FIXED_NONCES = ("00" * _NONCE_BYTES, "11" * _NONCE_BYTES)  # caller's and host's, in virtual time


class HandshakeError(Exception):
    """The other side may not have a link; the text says why."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A node's name, number and lab, and the secret with which it proves them."""

    name: str
    number: int
    lab: str
    secret: bytes

    @classmethod
    def of(cls, config: NodeConfig) -> "Identity":
        """As node.json has it."""
        return cls(config.name, config.number, config.lab, config.secret)


def new_nonce() -> str:
    """Never the same again."""
    return os.urandom(_NONCE_BYTES).hex()


class Caller:
    """The side that has connected to the broker of this name."""

    def __init__(self, own: Identity, broker: str, nonce: str) -> None:
        self._own = own
        self._broker = broker
        self._nonce = nonce

    def first(self) -> bytes:
        """The first HELLO."""
        return _encode_hello(self._own, _introduction(self._own, self._nonce))

    def answer(self, data: bytes | str) -> bytes:
        """The second HELLO, if the host's was right; else HandshakeError."""
        hello = _decode_hello(data)
        name, nonce = _introduced(hello, self._own, self._nonce)
        if name != self._broker:
            raise HandshakeError(f"{name} answered where {self._broker} should be")
        parties = ((self._own.name, self._nonce), (name, nonce))
        _check_proof(hello, name, _proof("broker", self._own, *parties))
        return _encode_hello(self._own, {"proof": _proof("guest", self._own, *parties)})


class Host:
    """The broker to which the caller has connected."""

    def __init__(self, own: Identity, nonce: str) -> None:
        self._own = own
        self._nonce = nonce
        self._caller: tuple[str, str] | None = None  # name, nonce

    def answer(self, data: bytes | str) -> tuple[str, bytes]:
        """The name that the caller claims, and the reply; HandshakeError if it may not have a link."""
        caller = _introduced(_decode_hello(data), self._own, self._nonce)
        self._caller = caller
        proof = _proof("broker", self._own, caller, (self._own.name, self._nonce))
        return caller[0], _encode_hello(
            self._own, {**_introduction(self._own, self._nonce), "proof": proof}
        )

    def admit(self, data: bytes | str) -> str:
        """The caller's name, now proven; else HandshakeError."""
        hello = _decode_hello(data)
        if self._caller is None:
            raise HandshakeError("a proof before the first HELLO")
        host = (self._own.name, self._nonce)
        _check_proof(hello, self._caller[0], _proof("guest", self._own, self._caller, host))
        return self._caller[0]


def _encode_hello(own: Identity, fields: dict[str, str]) -> bytes:
    return encode(Message(Kind.HELLO, origin=own.number, payload=json.dumps(fields).encode()))


def _introduction(own: Identity, nonce: str) -> dict[str, str]:
    return {"name": own.name, "lab": own.lab, "nonce": nonce}


def _decode_hello(data: bytes | str) -> dict[str, Any]:
    if isinstance(data, str):
        raise HandshakeError("a text message instead of HELLO")
    try:
        message = decode(data)
    except WireError as error:
        raise HandshakeError(f"not a HELLO: {error}") from error
    if message.kind is not Kind.HELLO:
        raise HandshakeError(f"{message.kind.name} before HELLO")
    try:
        hello = json.loads(message.payload)
    except (ValueError, RecursionError) as error:
        raise HandshakeError("HELLO without name, lab and nonce, or without a proof") from error
    if not isinstance(hello, dict):
        raise HandshakeError("HELLO without name, lab and nonce, or without a proof")
    return hello


def _introduced(hello: dict[str, Any], own: Identity, own_nonce: str) -> tuple[str, str]:
    """Name and nonce of the other side, which must be of the same lab and not this node itself."""
    try:
        name, lab, nonce = hello["name"], hello["lab"], hello["nonce"]
    except KeyError as error:
        raise HandshakeError("HELLO without name, lab and nonce") from error
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise HandshakeError("HELLO with a name that cannot be one")
    if lab != own.lab:
        raise HandshakeError(f"{name} is of the lab {str(lab)[:MAX_NAME]!r}; this is {own.lab!r}")
    if not isinstance(nonce, str) or len(nonce) != 2 * _NONCE_BYTES:
        raise HandshakeError(f"{name} says HELLO with a nonce that cannot be one")
    if nonce == own_nonce:
        raise HandshakeError(f"{name} returns the nonce that it was sent")
    if name == own.name:
        raise HandshakeError(f"{name} is the name of this node itself")
    return name, nonce


def _proof(role: str, own: Identity, caller: tuple[str, str], host: tuple[str, str]) -> str:
    """The HMAC over a JSON list, which is ASCII and shows where one text ends and the next begins."""
    fields = json.dumps([role, caller[1], host[1], caller[0], host[0], own.lab])
    return hmac.digest(own.secret, fields.encode(), "sha256").hex()


def _check_proof(hello: dict[str, Any], name: str, expected: str) -> None:
    given = hello.get("proof")
    if given is None:
        raise HandshakeError(f"{name} gives no proof that it knows the lab's secret")
    if not isinstance(given, str) or not hmac.compare_digest(
        given.encode(errors="replace"), expected.encode()
    ):
        raise HandshakeError(f"{name} does not know the lab's secret")
