# This folder makes nothing: it is where `terraform test` runs the tests of all modules in one go.
terraform {
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }
}
