"""Dashboards, alert rules and alert routes, made from code. Knows names of metrics; measures and serves nothing."""
