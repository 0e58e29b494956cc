"""Files as clients really have them: what each key became, what was said, which server is off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from observant_host.config.model import HttpServer, ServerConfig, StdioServer
from observant_host.config_files import Surroundings, load

REAL = Path(__file__).parent / "real"
VARIABLES = {
    "SCANNER_API_KEY": "sc4nner",
    "BACKSTAGE_TOKEN": "b4ckstage",
    "TAVILY_API_KEY": "t4vily",
    "DEFAULT_PROVIDER": "tavily",
    "SENTRY_KEY": "s3ntry",
}


def became(one: ServerConfig) -> dict[str, Any]:
    """Everything of a server that is not a default."""
    found: dict[str, Any] = {}
    match one.launch:
        case StdioServer():
            found["command"] = list(one.launch.command)
            found |= {"env": dict(one.launch.env)} if one.launch.env else {}
        case HttpServer():
            found["url"] = one.launch.url
            found |= {"headers": dict(one.launch.headers)} if one.launch.headers else {}
            found |= {"transport": one.launch.transport} if one.launch.transport != "auto" else {}
    for key, value in (
        ("enabled", one.enabled),
        ("allow", list(one.tools.allow)),
        ("deny", list(one.tools.deny)),
        ("call_timeout_s", one.timing.call_timeout_s),
    ):
        if value not in (True, [], 60.0):
            found[key] = value
    if one.problem is not None:
        found["off"] = True
    return found


TABLE: dict[str, dict[str, dict[str, Any]]] = {
    "claude_desktop.json": {
        "filesystem": {
            "command": [
                "/Users/someone/.asdf/shims/npx",
                "-y",
                "@modelcontextprotocol/server-filesystem",
                "/Users/someone",
            ]
        },
        "jssdk": {
            "command": ["node", "/Users/someone/research/dist/adapter.js"],
            "env": {"NODE_ENV": "production", "PORT": "3001"},
        },
    },
    "claude_code_project.mcp.json": {
        "knowledge_base": {
            "command": [
                "/Users/someone/tools/rag/.venv/bin/python3",
                "/Users/someone/tools/rag/server.py",
            ],
            "env": {
                "RAG_CONFIG": "/Users/someone/rag.yml",
                "PYTHONPATH": "/Users/someone/tools/rag",
            },
        },
        "scanner": {
            "command": [
                "/Users/someone/scanner/bin/python",
                "/Users/someone/scanner/server.py",
                "--server",
                "http://scanner.example:5000/",
            ],
            "env": {"SCANNER_API_KEY": "sc4nner"},
        },
        "rust-docs": {
            "command": ["/usr/bin/mcp-rust-docs", "--log-file", "/home/someone/logs/rust.log"],
            "deny": ["workspace-info"],
        },
    },
    "claude_code_user.claude.json": {
        "context7": {
            "url": "https://mcp.context7.com/mcp",
            "headers": {"CONTEXT7_API_KEY": "replaced-secret-c7"},
            "transport": "http",
        }
    },
    "cursor.json": {
        "eslint": {"command": ["npx", "@eslint/mcp@latest"]},
        "netbox": {"command": ["bash", f"{REAL}/dev/netbox-mcp.sh"], "off": True},
        "Sentry": {"url": "https://mcp.sentry.dev/mcp/someone/javascript-nextjs"},
    },
    "cline.json": {
        "github.com-upstash-context7-mcp": {
            "command": ["npx", "-y", "@upstash/context7-mcp@1.0.6"],
            "env": {"NODE_OPTIONS": "--max-old-space-size=4096"},
        },
        "tavily-search": {"command": ["python", "-m", "mcp_server_tavily"], "enabled": False},
        "local-sse": {"url": "http://127.0.0.1:5005/mcp/sse"},
    },
    "vscode.json": {
        "microsoft-learn": {"url": "https://learn.microsoft.com/api/mcp", "transport": "http"},
        "fabric-mcp-server": {
            "command": [
                "npx",
                "-y",
                "@microsoft/fabric-mcp@latest",
                "server",
                "start",
                "--mode",
                "all",
            ]
        },
        "Dev-Box-MCP": {"command": ["npx", "-y", "https://packages.example/devbox/preview"]},
        "direct-line": {
            "command": ["npx", "-y", "copilot-studio-agent-direct-line-mcp"],
            "off": True,
        },
        "backstage": {
            "url": "http://localhost:7007/api/mcp-actions/v1",
            "headers": {"Authorization": "Bearer b4ckstage"},
            "transport": "http",
        },
    },
    "windsurf.json": {
        "context7": {"url": "https://mcp.context7.com/sse"},
        "sequential-thinking": {
            "command": ["bunx", "-y", "@modelcontextprotocol/server-sequential-thinking"]
        },
        "memory": {
            "command": ["npx", "-y", "@modelcontextprotocol/server-memory"],
            "env": {"MEMORY_FILE_PATH": ""},
        },
    },
    "zed.json": {
        "mcp-server-github": {"off": True},
        "notion": {
            "command": ["npx", "-y", "@notionhq/notion-mcp-server"],
            "env": {"NOTION_TOKEN": "replaced-secret-notion"},
        },
        "context-hub": {"command": ["uvx", "pipecat-ai-context-hub", "serve"]},
    },
    "gemini.json": {
        "expo": {"url": "https://mcp.expo.dev/mcp"},
        "both": {
            "url": "https://http.example/mcp",
            "allow": ["safe"],
            "deny": ["danger"],
            "call_timeout_s": 15.0,
        },
        "github": {
            "url": "https://api.githubcopilot.com/mcp/",
            "headers": {"Authorization": "Bearer $GITHUB_MCP_PAT"},
        },
        "cep": {"url": "http://localhost:3000/mcp", "off": True},
    },
    "roo.json": {
        "fetch": {"command": ["docker", "run", "-i", "--rm", "mcp/fetch"]},
        "memory": {"command": ["npx", "-y", "@modelcontextprotocol/server-memory"]},
    },
    "copilot_cli.json": {
        "deepwiki": {"url": "https://mcp.deepwiki.com/sse", "transport": "sse", "off": True},
        "exa": {"url": "https://mcp.exa.ai/mcp", "transport": "http"},
        "github": {
            "url": "https://api.githubcopilot.com/mcp",
            "transport": "http",
            "allow": ["get_commit", "search_code"],
        },
    },
    "kiro.json": {
        "aws-docs": {
            "command": ["uvx", "awslabs.aws-documentation-mcp-server@latest"],
            "env": {"FASTMCP_LOG_LEVEL": "ERROR"},
        }
    },
    "opencode.json": {
        "nix": {"command": ["nix", "run", "nixpkgs#mcp-nixos", "--"]},
        "codegraph": {"command": ["codegraph", "serve", "--mcp"]},
        "sentry": {
            "url": "https://mcp.sentry.dev/mcp/someone/javascript",
            "headers": {"X-Key": "s3ntry"},
            "enabled": False,
        },
    },
    "continue.json": {
        "web": {
            "command": ["node", "./dist/index.js"],
            "env": {"TAVILY_API_KEY": "t4vily", "DEFAULT_PROVIDER": "tavily"},
        }
    },
}

SAID: dict[str, list[str]] = {
    "claude_code_project.mcp.json": ["without meaning here: description (1 server)"],
    "claude_code_user.claude.json": ["1 more server under `projects` are not read"],
    "cline.json": [
        "without meaning here: alwaysAllow (1 server), autoApprove (2 servers)",
        '"github.com/upstash/context7-mcp" is called github.com-upstash-context7-mcp',
    ],
    "vscode.json": ["without meaning here: dev (1 server)", '"Dev Box MCP" is called Dev-Box-MCP'],
    "zed.json": ["without meaning here: settings (2 servers)"],
    "gemini.json": [
        "without meaning here: trust (1 server)",
        "github.headers.Authorization holds a `$NAME` in the style of a shell",
    ],
    "roo.json": ["without meaning here: alwaysAllow (2 servers)"],
    "kiro.json": ["without meaning here: autoApprove (1 server)"],
    "continue.json": ["without meaning here: name (1 server)"],
}

OFF = {
    "cursor.json": ("netbox", "netbox.envFile: the file"),
    "vscode.json": ("direct-line", "`${input:direct_line_secret}` is asked by another client"),
    "zed.json": ("mcp-server-github", "source: the server comes with an extension of the editor"),
    "gemini.json": ("cep", "oauth: signing in by OAuth is not available here"),
    "copilot_cli.json": ("deepwiki", 'has `transport = "sse"` without `allow_legacy`'),
}


def loaded(name: str) -> Any:
    around = Surroundings(VARIABLES, REAL, Path("/home/someone"))
    return load(REAL / name, around=around)


def test_there_are_at_least_ten_and_each_is_in_the_table_and_in_the_readme() -> None:
    files = {path.name for path in REAL.glob("*.json")} | {p.name for p in REAL.glob(".*.json")}
    assert files == set(TABLE)
    assert len(files) >= 10
    readme = (REAL / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in files)


@pytest.mark.parametrize("name", TABLE)
def test_what_each_key_became(name: str) -> None:
    assert {one.name: became(one) for one in loaded(name).config.servers} == TABLE[name]


@pytest.mark.parametrize("name", TABLE)
def test_what_was_said_of_it(name: str) -> None:
    assembled = loaded(name).assembled
    said = [*assembled.notices, *assembled.warnings]
    assert all(sentence.startswith(str(REAL / name)) for sentence in said)
    expected = SAID.get(name, [])
    assert len(said) == len(expected), said
    assert all(part in sentence for part, sentence in zip(expected, said, strict=True)), said


@pytest.mark.parametrize("name", OFF)
def test_why_a_server_is_off(name: str) -> None:
    off, reason = OFF[name]
    problem = next(one.problem for one in loaded(name).config.servers if one.name == off)
    assert problem is not None
    assert reason in problem
