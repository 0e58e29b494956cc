"""Where other clients keep their files: read by `init`, named where one lies around, never run."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LYING_AROUND: Final = (
    "observant-host.toml",
    ".mcp.json",
    "mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    "opencode.json",
)
"""Files of a folder that a person may have expected to be used; they are only named."""

_EVERYWHERE: Final[Mapping[str, str]] = {
    "Claude Code": ".claude.json",
    "Cursor": ".cursor/mcp.json",
    "Windsurf": ".codeium/windsurf/mcp_config.json",
    "Gemini CLI": ".gemini/settings.json",
    "Copilot CLI": ".copilot/mcp-config.json",
    "Kiro": ".kiro/settings/mcp.json",
    "LM Studio": ".lmstudio/mcp.json",
    "opencode": ".config/opencode/opencode.json",
    "Zed": ".config/zed/settings.json",
}
_IN_CONFIG: Final[Mapping[str, str]] = {
    "Claude Desktop": "Claude/claude_desktop_config.json",
    "VS Code": "Code/User/mcp.json",
    "Cline": "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "Roo Code": "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
}
"""Below the folder that the platform gives applications for their settings."""


def client_files(home: str, platform: str) -> Iterator[tuple[str, str]]:
    """(client, path) of every place of a user that is known, whether or not it exists."""
    settings = "Library/Application Support" if platform == "darwin" else ".config"
    for client, path in _EVERYWHERE.items():
        yield client, str(PurePath(home, path))
    for client, path in _IN_CONFIG.items():
        yield client, str(PurePath(home, settings, path))
