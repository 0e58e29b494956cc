"""The key that replicas share, read before anything is served.

Without a file the key is random: what agents carry is then good for this run alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from observant_host.errors import ConfigError
from observant_host.service.mcp.sealing import random_keys, read_keys

if TYPE_CHECKING:
    from observant_host.config import ServiceSettings


def keys_of(settings: ServiceSettings) -> tuple[bytes, ...]:
    """Reads a file. Raises ConfigError, which names the setting and quotes nothing of the file."""
    if settings.state_key_file is None:
        return random_keys()
    try:
        return read_keys(Path(settings.state_key_file).read_text(encoding="ascii"))
    except OSError as error:
        why = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        why = "it is no text of base64"
    except ValueError as error:
        why = str(error)
    raise ConfigError([f"service.state_key_file: {settings.state_key_file}: {why}"])
