terraform {
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.100, < 7"
    }
  }

  # The bucket is made once by hand (docs/deploy/aws.md) and named by -backend-config; it is encrypted and versioned.
  backend "s3" {
    key          = "axon/prod.tfstate"
    encrypt      = true
    use_lockfile = true
  }
}
