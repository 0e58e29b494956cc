"""Short ways to read a configuration in a test, from texts instead of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.config.assemble import ImportedServer, lay
from observant_host.config.effective import Assembled, build
from observant_host.config.expand import Lookup, UnresolvedError
from observant_host.config.parse import read_toml
from observant_host.errors import ConfigError
from observant_host.foreign_config import ForeignFile, read_foreign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config.model import ServerConfig

FOLDER = "/etc/oh"


def lookup(variables: Mapping[str, str] = {}, files: Mapping[str, str] = {}) -> Lookup:
    def read_file(path: str, folder: str) -> str:
        if path not in files:
            raise UnresolvedError(f"the file {path} cannot be read (looked in {folder})")
        return files[path]

    return Lookup(variables, read_file)


def read(
    toml: str = "",
    *,
    imported: tuple[ImportedServer, ...] = (),
    variables: Mapping[str, str] = {},
    files: Mapping[str, str] = {},
    flags: Mapping[str, object] = {},
) -> Assembled:
    file = read_toml(toml.encode(), name="oh.toml", folder=FOLDER)
    layers = lay(file, imported=imported, variables=variables, flags=flags)
    return build(layers, lookup(variables, files))


def foreign(text: str, *, name: str = "client.json", **places: str) -> ForeignFile:
    return read_foreign(text.encode(), name=name, folder="/home/x/project", places=places)


def read_both(text: str, toml: str = "", *, variables: Mapping[str, str] = {}) -> Assembled:
    """A foreign file, and a TOML file that overlays it."""
    return read(toml, imported=foreign(text).servers, variables=variables)


def server(assembled: Assembled, name: str) -> ServerConfig:
    return next(one for one in assembled.config.servers if one.name == name)


def problems(toml: str, **rest: object) -> tuple[str, ...]:
    """The sentences of a configuration that must be refused."""
    try:
        read(toml, **rest)  # type: ignore[arg-type]  # passed on as they came
    except ConfigError as error:
        return error.problems
    raise AssertionError("nothing was refused")
