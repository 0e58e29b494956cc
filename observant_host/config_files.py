"""Finds and reads configuration: the only place that touches files and variables for it."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from platformdirs import PlatformDirs

from observant_host.config.assemble import PREFIX, ImportedServer, lay
from observant_host.config.dotenv import read_dotenv
from observant_host.config.effective import Assembled, build
from observant_host.config.expand import Lookup, UnresolvedError, expand
from observant_host.config.origin import Leaf, Origin
from observant_host.config.parse import TomlFile, read_toml, texts_of
from observant_host.errors import ConfigError
from observant_host.foreign_config import ForeignFile, places_of, read_foreign
from observant_host.foreign_config.places import LYING_AROUND

if TYPE_CHECKING:
    from observant_host.config.model import HostConfig

FILE_NAME: Final = "observant-host.toml"
CONFIG_VARIABLE: Final = f"{PREFIX}CONFIG"
TOML_MAX_BYTES: Final = 4 * 1024 * 1024
"""Ten thousand servers fit; a larger file is a mistake."""
JSON_MAX_BYTES: Final = 32 * 1024 * 1024
"""Claude Code keeps its history in the same file as its servers."""
INSERT_MAX_BYTES: Final = 256 * 1024
"""A secret or an env file; a larger one is the wrong file."""


class Surroundings(msgspec.Struct, frozen=True):
    """What of the machine configuration depends on."""

    variables: Mapping[str, str]
    current: Path
    home: Path
    platform: str = "linux"

    @classmethod
    def of_process(cls) -> Surroundings:
        return cls(dict(os.environ), Path.cwd(), Path.home(), sys.platform)

    def folder(self, kind: str) -> Path:
        """The user's folder of one kind ("config", "state", "cache"), ours in it."""
        given = self.variables.get(f"XDG_{kind.upper()}_HOME", "")
        if Path(given).is_absolute():
            return Path(given) / "observant-host"
        if self.platform == "linux":
            below = {"config": ".config", "state": ".local/state", "cache": ".cache"}[kind]
            return self.home / below / "observant-host"
        dirs = PlatformDirs("observant-host", appauthor=False)
        return Path(getattr(dirs, f"user_{kind}_dir"))


class Loaded(msgspec.Struct, frozen=True):
    """One effective configuration. `path` is the file that was read, `files` every file that
    decided something, variables files included, `digests` of what is in them (for reload).
    `state_dir` and `cache_dir` of `config.host` are filled in."""

    path: Path
    assembled: Assembled
    files: tuple[Path, ...] = ()
    digests: Mapping[Path, str] = {}

    @property
    def config(self) -> HostConfig:
        return self.assembled.config

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must never be shown, for the masker."""
        return self.assembled.secrets


def find(explicit: str | Path | None, around: Surroundings) -> Path:
    """The file to use: given, OBSERVANT_HOST_CONFIG, or the user's own. Never the current folder.

    Raises ConfigError that names what lies in the current folder.
    """
    given = str(explicit or around.variables.get(CONFIG_VARIABLE, ""))
    if given:
        return around.current / Path(given).expanduser()
    own = around.folder("config") / FILE_NAME
    if own.is_file():
        return own
    raise ConfigError([_nothing_found(own, around)])


def _nothing_found(own: Path, around: Surroundings) -> str:
    missing = (
        f"no configuration: neither --config nor {CONFIG_VARIABLE} is given, and there is no {own}"
    )
    lying = [name for name in LYING_AROUND if (around.current / name).is_file()]
    if not lying:
        return f"{missing}; `observant-host init` makes one out of a client's file"
    uses = [
        f"--config {name}" if name == FILE_NAME else f"`observant-host init --from {name}`"
        for name in lying
    ]
    return (
        f"{missing}; nothing in the current folder is used by itself: say {' or '.join(uses)} "
        "to use what lies there"
    )


def load(
    explicit: str | Path | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    around: Surroundings | None = None,
) -> Loaded:
    """Find, read, import, overlay. `flags` maps "table.key" to a value. Raises ConfigError.

    A JSON file of a desktop client may be given in place of a TOML file.
    """
    around = around or Surroundings.of_process()
    path = find(explicit, around)
    data = _read(path, JSON_MAX_BYTES)
    if _is_json(path, data):
        return _loaded(path, None, [path], flags or {}, around)
    file = read_toml(data, name=str(path), folder=str(path.parent))
    return _loaded(path, file, _imports(file, around), flags or {}, around)


def load_clients(paths: Sequence[Path], around: Surroundings) -> Loaded:
    """Other clients' files alone, with no file of ours. Raises ConfigError."""
    return _loaded(paths[0], None, paths, {}, around)


def _loaded(
    path: Path,
    file: TomlFile | None,
    imports: Sequence[Path],
    flags: Mapping[str, object],
    around: Surroundings,
) -> Loaded:
    lookup = Lookup(around.variables, _read_insert)
    foreign = [_foreign(each, lookup, around) for each in imports]
    layers = lay(
        file,
        imported=[server for _, servers in foreign for server in servers],
        variables=around.variables,
        flags=flags,
    )
    built = _with_folders(build(layers, lookup), around)
    assembled = msgspec.structs.replace(
        built,
        notices=tuple(notice for read, _ in foreign for notice in read.notices),
        warnings=(*(w for read, _ in foreign for w in read.warnings), *built.warnings),
    )
    inserted = [each for read, _ in foreign for each in _env_files(read, lookup)]
    files = tuple(dict.fromkeys([path, *imports, *inserted]))
    return Loaded(path, assembled, files=files, digests=digests(files))


def read_client_file(path: Path, around: Surroundings) -> ForeignFile:
    """One client's own file, for `init` and `doctor`. Raises ConfigError."""
    folder = str(path.parent)
    return read_foreign(
        _read(path, JSON_MAX_BYTES),
        name=str(path),
        folder=folder,
        places=places_of(folder, str(around.home)),
    )


def _foreign(
    path: Path, lookup: Lookup, around: Surroundings
) -> tuple[ForeignFile, list[ImportedServer]]:
    read = read_client_file(path, around)
    return read, [
        _with_env_file(server, read.env_files[server.name], lookup)
        if server.name in read.env_files
        else server
        for server in read.servers
    ]


def _env_files(read: ForeignFile, lookup: Lookup) -> Iterator[Path]:
    for written in read.env_files.values():
        with suppress(UnresolvedError):
            yield _env_file(written, lookup)


def _env_file(written: Leaf, lookup: Lookup) -> Path:
    origin = written.origin
    if not isinstance(written.raw, str):
        raise UnresolvedError("it is not a path")
    path = expand(written.raw, lookup, folder=origin.folder, places=origin.places).text
    return Path(origin.folder, Path(path).expanduser())


def digests(files: Iterable[Path]) -> dict[Path, str]:
    """What is in each file, told apart by content: a changed link counts as what it leads to.
    A file that cannot be read has a digest of its own."""
    return {path: _digest(path) for path in files}


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.errno}"


def _with_env_file(server: ImportedServer, written: Leaf, lookup: Lookup) -> ImportedServer:
    """The server with the variables of its env file; its own `env` wins over them."""
    origin = written.origin
    try:
        path = str(_env_file(written, lookup))
        variables = read_dotenv(_read_insert(path, origin.folder))
    except UnresolvedError as error:
        problem = f"{server.source}: {server.name}.envFile: {error}"
        return msgspec.structs.replace(server, problem=server.problem or problem)
    inserted = {
        ("env", name): Leaf(value.replace("${", "$${"), Origin("import", path, origin.folder))
        for name, value in variables.items()
    }
    return msgspec.structs.replace(server, leaves={**inserted, **server.leaves})


def _imports(file: TomlFile, around: Surroundings) -> list[Path]:
    lookup = Lookup(around.variables, _read_insert)
    leaf = file.leaves.get(("host", "import"))
    if leaf is None:
        return []
    try:
        texts = [
            expand(text, lookup, folder=file.folder, places={}).text for text in texts_of(leaf.raw)
        ]
    except UnresolvedError as error:
        raise ConfigError([f"{leaf.origin.where}: host.import {error}"]) from None
    paths = [Path(file.folder, _at_home(text, around)) for text in texts]
    missing = [path for path in paths if not os.path.exists(path)]  # noqa: PTH110 - raises nothing
    if missing:
        where = f"{leaf.origin.where}: host.import names"
        raise ConfigError(
            [f"{where} {path}, which is not there; correct it, or take it out" for path in missing]
        )
    return paths


def _at_home(text: str, around: Surroundings) -> str:
    return str(around.home / text[2:]) if text.startswith("~/") else text


def _with_folders(assembled: Assembled, around: Surroundings) -> Assembled:
    """Where no folder is written, the user's own: so `config show` names the real one."""
    host = assembled.config.host
    entries = dict(assembled.entries)
    filled: dict[str, str] = {}
    for key, kind in (("state_dir", "state"), ("cache_dir", "cache")):
        if getattr(host, key) is None:
            filled[key] = str(around.folder(kind))
            entries["host", key] = msgspec.structs.replace(entries["host", key], value=filled[key])
    config = msgspec.structs.replace(assembled.config, host=msgspec.structs.replace(host, **filled))
    return msgspec.structs.replace(assembled, config=config, entries=entries)


def _is_json(path: Path, data: bytes) -> bool:
    if path.suffix in (".toml", ".json", ".jsonc", ".json5"):
        return path.suffix != ".toml"
    return data.lstrip()[:1] == b"{"


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    if len(data) > most or (path.suffix == ".toml" and len(data) > TOML_MAX_BYTES):
        raise ConfigError([f"{path}: is too large to be a configuration"])
    return data


def _read_insert(path: str, folder: str) -> str:
    """A file that a value or an `envFile` refers to."""
    full = Path(folder, Path(path).expanduser())
    try:
        with full.open("rb") as stream:
            data = stream.read(INSERT_MAX_BYTES + 1)
        if len(data) > INSERT_MAX_BYTES:
            raise UnresolvedError(f"the file {full} is too large (over {INSERT_MAX_BYTES} bytes)")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UnresolvedError(f"the file {full} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnresolvedError(f"the file {full} is not UTF-8 text") from None


def default_state_dir(around: Surroundings | None = None) -> Path:
    """XDG state folder of the user (or the platform's), ours in it."""
    return (around or Surroundings.of_process()).folder("state")
