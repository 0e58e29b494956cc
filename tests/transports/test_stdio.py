"""The stdio transport keeps the promises of every transport, over real processes, and its own."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from observant_host.errors import TransportClosed
from observant_host.transports.pipes import drained
from tests.support.processes import eventually, state_of
from tests.transports.suite import FAR, TransportPromises, opened, request, stuck

if TYPE_CHECKING:
    from observant_host.transports.base import Outbound
    from tests.transports.conftest import StdioSubject


class TestStdio(TransportPromises):
    """The fixture `subject` gives real child processes."""


def raw(text: str) -> Outbound:
    return request(0, "raw", text=text)


async def test_lines_that_are_no_messages_are_noise_and_the_reader_goes_on(
    subject: StdioSubject,
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(
        raw('banner\n\x1b[32mINFO\x1b[0m\n42\nnull\n\n   \r\n{"a":1}\r\n  [1]\n'), expires=FAR
    )
    transport.send(request(1, "echo"), expires=FAR)
    await recorder.frame_count(3)
    assert recorder.frames[:2] == [b'{"a":1}', b"[1]"]
    assert recorder.noise == [
        ("not_json", b"banner"),
        ("not_json", b"\x1b[32mINFO\x1b[0m"),
        ("not_json", b"42"),
        ("not_json", b"null"),
    ]


async def test_a_line_over_the_bound_is_dropped_with_an_excerpt_and_the_next_one_is_read(
    subject: StdioSubject,
) -> None:
    transport = subject.make(max_message_bytes=100_000)
    recorder = await opened(transport)
    transport.send(request(1, "big", bytes=300_000), expires=FAR)
    transport.send(request(2, "echo"), expires=FAR)
    await recorder.answer_to(2)
    assert len(recorder.frames) == 1
    ((kind, excerpt),) = recorder.noise
    assert kind == "oversized"
    assert len(excerpt) <= 512
    assert b'"id": 1' in excerpt


async def test_a_line_of_thirty_mebibytes_arrives_in_linear_time(subject: StdioSubject) -> None:
    transport = subject.make(max_message_bytes=64 << 20)
    recorder = await opened(transport)
    took = {}
    for size in (3 << 20, 30 << 20):
        began = time.process_time()
        transport.send(request(size, "big", bytes=size), expires=FAR)
        await recorder.frame_count(len(took) + 1)
        took[size] = time.process_time() - began
        assert len(recorder.frames[-1]) > size
    # ten times the bytes; a quadratic reader would take a hundred times as long
    assert took[30 << 20] < 40 * max(took[3 << 20], 0.005)


@pytest.mark.parametrize("size", [65534, 65535, 65536, 65537, 131072])
async def test_lines_about_as_long_as_a_pipe_are_read_whole(
    subject: StdioSubject, size: int
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    line = "[" + " " * (size - 3) + "]\n"
    transport.send(raw(line), expires=FAR)
    transport.send(request(1, "echo"), expires=FAR)
    await recorder.frame_count(2)
    assert len(recorder.frames[0]) == size - 1


async def test_the_unterminated_rest_of_a_dead_peer_is_noise(subject: StdioSubject) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(raw('{"jsonrpc":"2.0","id":9'), expires=FAR)
    transport.send(request(1, "exit"), expires=FAR)
    await recorder.end()
    assert recorder.noise == [("unterminated", b'{"jsonrpc":"2.0","id":9')]
    assert recorder.frames == []


async def test_noise_is_masked_before_anyone_sees_it(subject: StdioSubject) -> None:
    secret = "correct-horse-battery"
    transport = subject.make(secrets=[secret], max_message_bytes=1000)
    recorder = await opened(transport)
    transport.send(raw(f"{'x' * 505}{secret}\n"), expires=FAR)
    transport.send(raw(f"[{secret}{' ' * 2000}]\n"), expires=FAR)
    transport.send(raw(secret), expires=FAR)
    transport.send(request(1, "exit"), expires=FAR)
    await recorder.end()
    assert [kind for kind, _ in recorder.noise] == ["not_json", "oversized", "unterminated"]
    assert b"correct" not in b"".join(excerpt for _, excerpt in recorder.noise)


# writing


async def test_a_frame_that_was_begun_is_finished_even_after_it_expired(
    subject: StdioSubject,
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(request(1, "pause"), expires=FAR)
    await recorder.answer_to(1)
    soon = subject.clock.monotonic() + 1
    begun = transport.send(request(2, "echo", text="y" * (1 << 20)), expires=soon)
    never = transport.send(request(3, "echo"), expires=soon)
    after = transport.send(request(4, "echo"), expires=FAR)
    assert (begun.started, never.started, after.started) == (True, False, False)
    assert not begun.withdraw()
    subject.clock.skipped += 2
    assert transport.pid is not None
    os.kill(transport.pid, signal.SIGUSR1)
    await recorder.answer_to(4)
    assert [message["id"] for message in recorder.messages] == [1, 2, 4]
    assert after.started
    assert not never.started


async def test_a_stuck_peer_delays_no_other_peer(subject: StdioSubject) -> None:
    bad, good = subject.make(), subject.make()
    bad_recorder, good_recorder = await opened(bad), await opened(good)
    await stuck(bad, bad_recorder)
    for number in range(100):
        bad.send(request(number, "echo", text="z" * 10_000), expires=FAR)
        good.send(request(number, "echo"), expires=FAR)
    await good_recorder.frame_count(100)
    await asyncio.gather(bad.close(), good.close())


async def test_a_peer_that_closes_its_stdin_and_lives_on_is_a_lost_life(
    subject: StdioSubject,
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(request(1, "close_stdin"), expires=FAR)
    await recorder.answer_to(1)
    # "closed" is said just before the close itself
    with pytest.raises(TransportClosed, match="has closed its stdin"):
        await eventually(lambda: not transport.send(request(2, "echo"), expires=FAR))
    end = await recorder.end()
    assert end.kind == "lost"
    assert "closed its stdin" in end.detail


# the end


async def test_an_answer_written_just_before_the_exit_is_delivered_before_the_end(
    subject: StdioSubject,
) -> None:
    for size in (10, 60_000, 1 << 20):
        transport = subject.make()
        recorder = await opened(transport)
        transport.send(request(1, "answer_and_exit", bytes=size, status=4), expires=FAR)
        end = await recorder.end()
        assert (end.kind, end.exit_code) == ("exit", 4)
        assert len(recorder.messages[0]["result"]) == size
        assert recorder.after_end == 0


async def test_all_of_a_large_pipe_is_read_after_the_exit_though_a_grandchild_holds_it_open(
    subject: StdioSubject,
) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(request(1, "child", mode="holds_stdout"), expires=FAR)
    await recorder.answer_to(1)
    pid = transport.pid
    assert pid is not None
    transport.send(
        request(2, "answer_and_exit", bytes=1_000_000, status=4, pipe=1 << 20), expires=FAR
    )
    while state_of(pid) != "Z":  # the loop stands still: pipe and exit are found together
        time.sleep(0.01)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", 4)
    assert [len(str(message["result"])) for message in recorder.messages][1:] == [1_000_000]


def test_draining_takes_what_a_pipe_can_hold_and_then_stops() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    assert list(drained(reading)) == []
    os.write(writing, b"x" * 65536)
    chunks = drained(reading)
    seen = 0
    for chunk in chunks:  # as fast as it is read, somebody writes more
        seen += len(chunk)
        os.write(writing, b"y" * len(chunk))
    assert seen == 65536
    os.close(writing)
    assert sum(map(len, drained(reading))) == 65536
    os.close(reading)
    assert list(drained(-1)) == []


async def test_an_exit_tells_its_status_and_the_last_words_of_stderr(
    subject: StdioSubject,
) -> None:
    transport = subject.make(secrets=["s3cr3t-key"])
    recorder = await opened(transport)
    words = "Traceback:\n\x1b[31merror: missing API_KEY, got s3cr3t-key\x1b[0m\n"
    transport.send(request(1, "exit", status=3, stderr=words), expires=FAR)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", 3)
    assert end.stderr_tail == "Traceback:\nerror: missing API_KEY, got ***"
    assert end.detail == (
        'server "sample" exited with status 3; its last words on stderr: '
        "Traceback: / error: missing API_KEY, got ***"
    )
    with pytest.raises(TransportClosed, match="exited with status 3") as closed:
        transport.send(request(2, "echo"), expires=FAR)
    assert closed.value.exit_code == 3
    assert closed.value.stderr_tail == end.stderr_tail


async def test_a_death_by_signal_names_the_signal(subject: StdioSubject) -> None:
    transport = subject.make()
    recorder = await opened(transport)
    transport.send(request(1, "kill", signal=signal.SIGSEGV), expires=FAR)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("exit", -signal.SIGSEGV)
    assert "signal 11 (SIGSEGV)" in end.detail


async def test_a_peer_that_closes_stdout_and_lives_on_is_ended(subject: StdioSubject) -> None:
    transport = subject.make("--ignore-eof")
    recorder = await opened(transport)
    transport.send(request(1, "close_stdout"), expires=FAR)
    end = await recorder.end()
    assert (end.kind, end.exit_code) == ("eof", None)
    assert "closed its stdout but kept running" in end.detail
    await eventually(lambda: transport.pid is None)
    assert await transport.close() == end


async def test_closing_says_how_the_process_ended(subject: StdioSubject) -> None:
    transport = subject.make("--last-words", "bye for now", shutdown_timeout_s=20)
    await opened(transport)
    end = await transport.close()
    assert (end.kind, end.exit_code) == ("closed", 0)
    assert end.stderr_tail == "bye for now"
    assert transport.pid is None
    assert transport.stderr_tail == "bye for now"


async def test_readers_do_not_inherit_the_context_of_whoever_started_them(
    subject: StdioSubject,
) -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")
    trace.set("the starter's")
    transport = subject.make()
    recorder = await opened(transport)
    seen = []
    recorder.frame_received = lambda frame, answering=None: bool(seen.append(trace.get()))  # type: ignore[method-assign] # what it sees is all that matters
    transport.send(request(1, "twice"), expires=FAR)
    await eventually(lambda: len(seen) == 2)
    assert set(seen) == {"none"}


async def test_stderr_is_drained_from_the_start_and_only_its_tail_is_kept(
    subject: StdioSubject,
) -> None:
    transport = subject.make("--stderr-first", str(2 << 20))
    recorder = await opened(transport)
    transport.send(request(1, "stderr", text="\nthe end\n"), expires=FAR)
    await recorder.answer_to(1)
    await eventually(lambda: transport.stderr_tail.endswith("the end"))
    assert len(transport.stderr_tail) <= 8192
