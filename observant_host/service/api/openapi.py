"""The OpenAPI document, made of the table of routes and of the types that it names.

Source: OpenAPI Specification 3.1.0; JSON Schema 2020-12 by msgspec.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.service.api import answers
from observant_host.service.api.routes import PREFIX, ROUTES, STREAM
from observant_host.version import VERSION

if TYPE_CHECKING:
    from observant_host.service.api.routes import Route

PATH: Final = f"{PREFIX}/openapi.json"
REFERENCE: Final = "#/components/schemas/{name}"
ABOUT: Final = (
    "Operate a running observant-host: its servers, its catalogue, its calls. On the private "
    "socket without a token; on the network with one that has the scope of the operation, where "
    "tokens are configured."
)
OUTCOMES: Final = {
    "400": "Invalid: bad arguments, or a bad result",
    "404": "Invalid: nothing is called that",
    "499": "Cancelled by somebody who operates the host",
    "503": "Unavailable: nobody can answer it now",
    "504": "Its deadline passed",
}


@cache
def document() -> bytes:
    """As JSON."""
    types = {route.answer for route in ROUTES} | {route.body for route in ROUTES}
    wanted = sorted((one for one in types if one is not None), key=lambda one: one.__name__)
    wanted.append(answers.Problem)
    schemas, components = msgspec.json.schema_components(
        wanted, schema_hook=_anything, ref_template=REFERENCE
    )
    by_type = dict(zip(wanted, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        operations = paths.setdefault(PREFIX + route.path, {})
        operations[route.method.lower()] = _operation(route, by_type)
    paths[PATH] = {"get": _self_description()}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "observant-host",
                "version": VERSION,
                "description": ABOUT,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
            "servers": [{"url": "/"}],
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _operation(route: Route, by_type: dict[type, dict[str, Any]]) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", route.path)
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{re.sub(r'[^a-z]+', '_', route.path)[1:]}".rstrip(
            "_"
        ),
        "summary": route.summary,
        "description": f"Scope: `{route.scope}`.",
        "tags": [route.path.split("/")[1]],
        "security": [{"token": [route.scope]}, {}],
        "parameters": [
            *(_parameter(name, "path", "string", required=True) for name in names),
            *(_parameter(one.name, "query", one.kind, about=one.about) for one in route.query),
        ],
        "responses": _responses(route, by_type),
    }
    if route.body is not None:
        found["requestBody"] = {
            "required": route.ends_call,
            "content": {"application/json": {"schema": by_type[route.body]}},
        }
    return found


def _responses(route: Route, by_type: dict[type, dict[str, Any]]) -> dict[str, Any]:
    problem = {"application/json": {"schema": by_type[answers.Problem]}}
    schema = {"type": "string"} if route.answer is None else by_type[route.answer]
    found = {"200": {"description": "Done", "content": {route.media: {"schema": schema}}}}
    if route.ends_call:
        called = {"application/json": {"schema": by_type[answers.Called]}}
        for status, about in OUTCOMES.items():
            either = {"anyOf": [by_type[answers.Called], by_type[answers.Problem]]}
            content = {"application/json": {"schema": either}} if status == "400" else called
            found[status] = {"description": about, "content": content}
    elif route.method == "GET" and route.media != STREAM:
        found["304"] = {"description": "Nothing changed since If-None-Match", "content": {}}
    found["default"] = {"description": "It was refused, or failed", "content": problem}
    return found


def _parameter(
    name: str, place: str, kind: str, *, about: str = "", required: bool = False
) -> dict[str, Any]:
    found = {"name": name, "in": place, "required": required, "schema": {"type": kind}}
    return {**found, "description": about} if about else found


def _self_description() -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": "get_openapi",
        "summary": "This document",
        "tags": ["openapi"],
        "security": [{"token": ["read"]}, {}],
        "responses": {"200": {"description": "OpenAPI 3.1", "content": content}},
    }


def _anything(_: type) -> dict[str, Any]:
    return {"description": "Any JSON value"}
