"""The bounded queue in front of a pipe, over a pipe that takes what the test says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.errors import QueueFull
from observant_host.transports.outbox import Outbox, Waiting

FAR = float("inf")


class FakePipe:
    """Takes at most `room` bytes, as a full kernel pipe does."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.taken = b""
        self.wanted = False
        self.broken = False

    def write(self, data: bytes | memoryview) -> int:
        if self.broken:
            raise BrokenPipeError
        part = bytes(data[: self.room])
        self.room -= len(part)
        self.taken += part
        return len(part)

    def want_writable(self, wanted: bool) -> None:
        self.wanted = wanted


class Box:
    def __init__(self, room: int = 1 << 30, max_bytes: int = 1000, max_frames: int = 10) -> None:
        self.pipe = FakePipe(room)
        self.now = 0.0
        self.outbox = Outbox(
            self.pipe, now=lambda: self.now, max_bytes=max_bytes, max_frames=max_frames
        )


def test_a_frame_leaves_at_once_while_nothing_waits() -> None:
    box = Box()
    assert box.outbox.put(b"one", expires=0).started
    assert box.pipe.taken == b"one\n"
    assert not box.pipe.wanted


def test_what_does_not_fit_waits_for_the_pipe_in_order() -> None:
    box = Box(room=2)
    first = box.outbox.put(b"one", expires=FAR)
    second = box.outbox.put(b"two", expires=FAR)
    assert (first.started, second.started) == (True, False)
    assert box.pipe.wanted
    box.pipe.room = 100
    box.outbox.flush()
    assert box.pipe.taken == b"one\ntwo\n"
    assert second.started
    assert not second.withdraw()
    assert (box.pipe.wanted, box.outbox.waiting_frames, box.outbox.waiting_bytes) == (False, 0, 0)


def test_a_frame_of_which_nothing_left_can_be_withdrawn_and_its_memory_is_free() -> None:
    box = Box(room=0)
    sent = box.outbox.put(b"one", expires=FAR)
    assert not sent.started
    assert sent.withdraw()
    assert isinstance(sent, Waiting)
    assert (box.outbox.waiting_frames, box.outbox.waiting_bytes, len(sent.data)) == (0, 0, 0)
    box.pipe.room = 100
    box.outbox.flush()
    assert box.pipe.taken == b""


def test_a_frame_that_was_begun_outlives_its_deadline_and_others_do_not() -> None:
    box = Box(room=1)
    box.outbox.put(b"one", expires=5)
    expired = box.outbox.put(b"two", expires=5)
    box.outbox.put(b"three", expires=FAR)
    box.now = 6
    box.pipe.room = 100
    box.outbox.flush()
    assert box.pipe.taken == b"one\nthree\n"
    assert not expired.started
    assert expired.withdraw()


def test_the_queue_is_bounded_in_bytes_and_in_frames() -> None:
    box = Box(room=0, max_bytes=100, max_frames=3)
    box.outbox.put(b"x" * 500, expires=FAR)
    with pytest.raises(QueueFull, match="nothing was sent"):
        box.outbox.put(b"y", expires=FAR)
    box = Box(room=0, max_bytes=100, max_frames=3)
    for _ in range(3):
        box.outbox.put(b"", expires=FAR)
    with pytest.raises(QueueFull):
        box.outbox.put(b"", expires=FAR)


def test_expired_frames_make_room() -> None:
    box = Box(room=0, max_frames=3)
    for _ in range(3):
        box.outbox.put(b"old", expires=5)
    box.now = 5
    box.outbox.put(b"new", expires=FAR)
    assert box.outbox.waiting_frames == 1


def test_withdrawing_thousands_of_frames_leaves_nothing_behind() -> None:
    box = Box(room=0, max_frames=3)
    box.outbox.put(b"stuck", expires=FAR)
    for _ in range(5000):
        assert box.outbox.put(b"call", expires=FAR).withdraw()
    assert box.outbox.waiting_frames == 1


def test_a_broken_pipe_is_told_and_clearing_forgets_everything() -> None:
    box = Box(room=1)
    box.outbox.put(b"one", expires=FAR)
    waiting = box.outbox.put(b"two", expires=FAR)
    box.pipe.broken = True
    with pytest.raises(BrokenPipeError):
        box.outbox.flush()
    box.outbox.clear()
    assert (box.outbox.waiting_frames, box.outbox.waiting_bytes, box.pipe.wanted) == (0, 0, False)
    assert waiting.withdraw()
    with pytest.raises(BrokenPipeError):
        box.outbox.put(b"three", expires=FAR)


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "room", "flush", "withdraw", "time"]), st.integers(0, 40)),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_the_pipe_gets_whole_frames_in_order_of_sending(
    steps: list[Step],
) -> None:
    box = Box(room=10, max_bytes=200, max_frames=5)
    sent: list[tuple[bytes, object]] = []
    for number, (verb, amount) in enumerate(steps):
        match verb:
            case "put":
                frame = f"{number}:{'x' * amount}".encode()
                try:
                    sent.append((frame, box.outbox.put(frame, expires=box.now + amount)))
                except QueueFull:
                    continue
            case "room":
                box.pipe.room = amount
            case "flush":
                box.outbox.flush()
            case "withdraw" if sent:
                sent[amount % len(sent)][1].withdraw()  # type: ignore[attr-defined] # a Sent
            case _:
                box.now += amount
    box.pipe.room = 1 << 30
    box.outbox.flush()
    *lines, rest = box.pipe.taken.split(b"\n")
    assert rest == b""
    started = [frame for frame, one in sent if one.started]  # type: ignore[attr-defined] # a Sent
    assert lines == started
    assert box.outbox.waiting_bytes == 0
