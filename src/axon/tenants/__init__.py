"""Administration of tenants, plans and keys. Knows neither HTTP nor a terminal."""
