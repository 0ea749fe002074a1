"""OpenID Connect: who somebody is, as an issuer of identities says."""
