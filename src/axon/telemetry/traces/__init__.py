"""Exports spans to an OpenTelemetry collector. Imported only where one is configured."""
