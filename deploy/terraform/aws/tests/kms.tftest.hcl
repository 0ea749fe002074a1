mock_provider "aws" {
  override_during = plan
}

variables {
  name       = "axon-test"
  account_id = "123456789012"
  region     = "eu-central-1"
  purposes   = { data = ["rds", "mq"], logs = ["logs", "sns"] }
}

run "a_rotated_key_for_each_purpose_that_only_its_services_use" {
  command = plan
  module { source = "./modules/kms" }

  assert {
    condition     = sort(keys(aws_kms_key.this)) == tolist(["data", "logs"])
    error_message = "Each purpose must have a key."
  }
  assert {
    condition     = alltrue([for key in aws_kms_key.this : key.enable_key_rotation])
    error_message = "Keys must be rotated."
  }
  assert {
    condition     = aws_kms_alias.this["data"].name == "alias/axon-test-data"
    error_message = "An alias must name the environment and the purpose."
  }
  assert {
    condition = [for statement in jsondecode(aws_kms_key.this["data"].policy).Statement : statement.Condition.StringEquals["kms:ViaService"] if can(statement.Condition.StringEquals["kms:ViaService"])] == [
      "mq.eu-central-1.amazonaws.com", "rds.eu-central-1.amazonaws.com"
    ]
    error_message = "The key must be used through the named services alone."
  }
  assert {
    condition     = alltrue([for statement in jsondecode(aws_kms_key.this["data"].policy).Statement : can(statement.Condition) || statement.Principal == { AWS = "arn:aws:iam::123456789012:root" }])
    error_message = "Whoever is not the account itself needs a condition."
  }
  assert {
    condition     = length([for statement in jsondecode(aws_kms_key.this["logs"].policy).Statement : statement if try(statement.Principal.Service, "") == "logs.eu-central-1.amazonaws.com"]) == 1
    error_message = "CloudWatch Logs must be allowed once."
  }
}

run "a_purpose_without_a_service_is_refused" {
  command = plan
  module { source = "./modules/kms" }
  variables {
    purposes = { nothing = [] }
  }
  expect_failures = [var.purposes]
}
