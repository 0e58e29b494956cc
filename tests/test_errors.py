"""The sentences of errors: what a person reads when a server answers badly."""

from __future__ import annotations

from observant_host.errors import RpcError


def test_an_error_without_a_message_shows_what_there_was_instead() -> None:
    assert "E_FAIL" in str(RpcError(0, "", {"code": "E_FAIL"}))
    assert "no message" in str(RpcError(-5, ""))
    assert len(str(RpcError(0, "", ["x" * 10_000]))) < 400
    assert str(RpcError(-5, "down", {"a": 1})).endswith("error -5: down")
