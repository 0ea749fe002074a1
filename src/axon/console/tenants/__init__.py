"""Commands for tenants, plans, keys, usage and the audit trail."""
