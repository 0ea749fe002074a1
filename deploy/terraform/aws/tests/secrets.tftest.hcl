mock_provider "aws" {
  override_during = plan
}

variables {
  name    = "axon/test"
  key_arn = "arn:aws:kms:eu-central-1:123456789012:key/data"
  secrets = { queue = "URL of the queue", pepper = "Secret of the keys" }
}

run "places_without_values" {
  command = plan
  module { source = "./modules/secrets" }

  assert {
    condition     = output.names == { pepper = "axon/test/pepper", queue = "axon/test/queue" }
    error_message = "Each secret has its place."
  }
  assert {
    condition     = alltrue([for secret in aws_secretsmanager_secret.this : secret.kms_key_id == var.key_arn && length(secret.replica) == 0])
    error_message = "Secrets are encrypted by our key."
  }
}

run "a_copy_in_the_other_region" {
  command = plan
  module { source = "./modules/secrets" }
  variables {
    replica_region  = "eu-west-1"
    replica_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/data"
  }
  assert {
    condition     = alltrue([for secret in aws_secretsmanager_secret.this : one(secret.replica).region == "eu-west-1"])
    error_message = "A lost region must not take the pepper with it."
  }
}

run "a_region_without_its_key_is_refused" {
  command = plan
  module { source = "./modules/secrets" }
  variables {
    replica_region = "eu-west-1"
  }
  expect_failures = [var.replica_key_arn]
}
