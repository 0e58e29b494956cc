"""Which of the host's environment variables a child gets: a documented few, never a secret.

A server configured with its own `env` still needs PATH and HOME to run at all, and proxy and
certificate variables to reach anything. Everything else of the host stays with the host, unless
`env_inherit` names it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BASE_NAMES = frozenset(
    {
        # who and where
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "PWD",
        # language and time
        "LANG", "LANGUAGE", "TZ",
        # scratch space
        "TMPDIR", "TMP", "TEMP",
        # proxies, in both cases (tools disagree on which they read)
        "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
        # certificates
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        # where launchers keep and find packages, so that a start is warm and offline mirrors work
        "npm_config_cache", "npm_config_registry", "npm_config_prefix", "npm_config_userconfig",
        "npm_config_cafile", "npm_config_offline", "npm_config_prefer_offline",
        "NPM_CONFIG_CACHE", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_PREFIX", "NPM_CONFIG_USERCONFIG",
        "NPM_CONFIG_CAFILE", "NPM_CONFIG_OFFLINE", "NPM_CONFIG_PREFER_OFFLINE",
        "UV_CACHE_DIR", "UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON", "UV_OFFLINE",
        "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY",
        "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "PIP_INDEX_URL", "PIP_CACHE_DIR", "PIP_CERT",
        "BUN_INSTALL", "DENO_DIR", "NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "COREPACK_HOME",
        # shared libraries of a relocated interpreter
        "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    }
)  # fmt: skip
BASE_PREFIXES = ("LC_", "XDG_")


def base_environment(
    host: Mapping[str, str], inherit: Iterable[str], configured: Mapping[str, str]
) -> dict[str, str]:
    """The whole environment of a child.

    The documented base of `host`, then the variables of `host` whose names match `inherit` (exact
    names or globs such as "AWS_*"), then `configured`, which wins. A value of the host that
    defines a shell function is not passed on.
    """
    patterns = tuple(inherit)
    inherited = {
        name: value
        for name, value in host.items()
        if _is_base(name) or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    safe = {name: value for name, value in inherited.items() if not value.startswith("()")}
    return safe | dict(configured)


def _is_base(name: str) -> bool:
    return name in BASE_NAMES or name.startswith(BASE_PREFIXES)
