"""A reserved port is for the test's own servers alone."""

import socket

import pytest

from support.ports import HOST, ReservedPorts


def test_a_reserved_port_refuses_connections_until_a_server_listens_on_it() -> None:
    with ReservedPorts() as ports:
        port = ports.reserve()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        for _ in range(2):  # also a server that is started again
            with socket.create_server((HOST, port)):
                socket.create_connection((HOST, port)).close()


def test_nobody_else_gets_a_reserved_port() -> None:
    with ReservedPorts() as ports:
        port = ports.reserve()
        assert ports.reserve() != port
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
