"""A server on the official Python SDK 2.x with OpenTelemetry set up as its documentation says: it
exports to where OTEL_EXPORTER_OTLP_ENDPOINT points. On stdio.
"""

import time

from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider(resource=Resource.create({"service.name": "traced-server"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
server = MCPServer("traced", version="1.0.0")


@server.tool()
def slow(seconds: float) -> str:
    """Take that long."""
    time.sleep(seconds)
    return "done"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("as asked")


server.run(transport="stdio")
