"""A peer that knows nothing of MCP: for tests of transports alone (standard library only).

Methods: echo (its params come back) · twice (two answers) · leave (answers, then exits 0) · hold
(answers, then reads no more) · pause (the same, until SIGUSR1) · exit {status, stderr} ·
answer_and_exit {bytes, status, pipe (its size)} · kill {signal} · close_stdout · close_stdin ·
raw {text} (written as it is) · stderr {text} · big {bytes} (one line of that size) · env · pids ·
child {mode} (a grandchild that heeds no SIGTERM: "plain", "holds_stdout", "own_session",
"no_environment"; answers its pid).
Options: --ignore-eof, --ignore-term, --stderr-first BYTES, --last-words TEXT (on stderr at exit),
--announce-term (writes a frame at SIGTERM), --launcher (starts itself as its own child on the same
pipes, waits, and passes no signal on). Others, such as --marker TEXT, are for the eyes of others;
grandchildren have them too.
"""

import fcntl
import json
import os
import signal
import sys
import time

GRANDCHILD = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    "; signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(60)"
)


def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def send(message_id, result):
    write(json.dumps({"jsonrpc": "2.0", "id": message_id, "result": result}).encode() + b"\n")


def start_grandchild(mode):
    argv = [sys.executable, "-I", "-S", "-c", GRANDCHILD, *sys.argv[1:]]
    environment = {} if mode == "no_environment" else os.environ
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)]
    if mode != "holds_stdout":
        actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    session = mode in ("own_session", "no_environment")
    if not session:
        return os.posix_spawn(argv[0], argv, environment, file_actions=actions)
    return os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)


def act(message):
    method, params, key = message["method"], message.get("params") or {}, message.get("id")
    if method == "echo":
        send(key, params)
    elif method == "twice":
        send(key, 1)
        send(key, 2)
    elif method == "leave":
        send(key, "last words")
        os._exit(0)
    elif method == "hold":
        send(key, "holding")
        time.sleep(3600)
    elif method == "pause":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        send(key, "paused")
        signal.sigwait([signal.SIGUSR1])
    elif method == "answer_and_exit":
        if "pipe" in params:
            fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, params["pipe"])
        send(key, "x" * params["bytes"])
        os._exit(params.get("status", 0))
    elif method == "exit":
        os.write(2, params.get("stderr", "").encode())
        os._exit(params.get("status", 0))
    elif method == "kill":
        os.kill(os.getpid(), params.get("signal", 9))
    elif method == "close_stdout":
        os.close(1)
        os.close(2)
    elif method == "close_stdin":
        send(key, "closed")
        os.close(0)
        time.sleep(3600)
    elif method == "raw":
        write(params["text"].encode())
    elif method == "stderr":
        os.write(2, params["text"].encode())
        send(key, "written")
    elif method == "big":
        send(key, "x" * params["bytes"])
    elif method == "env":
        send(key, {"environment": dict(os.environ), "cwd": os.getcwd()})
    elif method == "pids":
        send(key, {"pid": os.getpid(), "pgid": os.getpgid(0), "sid": os.getsid(0)})
    elif method == "child":
        send(key, start_grandchild(params.get("mode", "plain")))


def main(arguments):
    if "--launcher" in arguments:
        rest = [one for one in arguments if one != "--launcher"]
        argv = [sys.executable, "-I", "-S", __file__, *rest]
        os.waitpid(os.posix_spawn(argv[0], argv, os.environ), 0)
        return
    if "--ignore-term" in arguments:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--announce-term" in arguments:
        signal.signal(signal.SIGTERM, lambda *_: (send("term", "SIGTERM"), os._exit(0)))
    if "--stderr-first" in arguments:
        size = int(arguments[arguments.index("--stderr-first") + 1])
        os.write(2, b"e" * size)
    with os.fdopen(0, "rb", closefd=False) as source:
        for line in source:
            act(json.loads(line))
    if "--last-words" in arguments:
        os.write(2, arguments[arguments.index("--last-words") + 1].encode())
    if "--ignore-eof" in arguments:
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1:])
