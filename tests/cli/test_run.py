"""`run` as a process: log lines, signals, addresses, and a second host in the same folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

from tests.cli.serving import serving


def test_run_serves_health_and_metrics_and_sigterm_ends_it_cleanly(tmp_path) -> None:
    with serving(tmp_path) as host:
        listening = host.until("host_lifecycle", what="listening")
        address = listening["detail"].split()[1].rstrip(",")
        host.until("host_lifecycle", what="published")
        with urllib.request.urlopen(f"{address}/readyz", timeout=30) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
            body = answer.read()
            assert b"observant_host_peer_state" in body
            assert b"observant_host_config_info{hash=" in body
        assert host.end(signal.SIGTERM) == 0
        assert host.process.stdout is not None
        assert host.process.stdout.read() == ""


def test_ctrl_c_ends_it_cleanly_too(tmp_path) -> None:
    with serving(tmp_path) as host:
        host.until("host_lifecycle", what="published")
        assert host.end(signal.SIGINT) == 0


def test_a_second_host_in_the_same_folder_is_refused_with_a_sentence(tmp_path) -> None:
    with serving(tmp_path) as host:
        host.until("host_lifecycle", what="listening")
        second = subprocess.run(
            [sys.executable, "-m", "observant_host", "run", "-c", str(host.stage.config)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert second.returncode == 3
    assert "Traceback" not in second.stderr
    assert str(host.stage.state_dir) in second.stderr


def test_a_listen_flag_wins_over_the_file(tmp_path) -> None:
    with serving(tmp_path, "--listen", "0.0.0.0:0") as host:
        _, err = host.process.communicate(timeout=30)
        assert host.process.returncode == 2
        assert "token" in err
