"""Terraform and what stands in for the AWS provider, so that modules are validated and tested without an account."""
