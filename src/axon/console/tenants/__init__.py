"""Commands for tenants, plans, keys and usage."""
