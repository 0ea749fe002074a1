mock_provider "aws" {
  override_during = plan

  mock_resource "aws_s3_bucket" {
    defaults = { arn = "arn:aws:s3:::axon-test-logs" }
  }
}

variables {
  name       = "axon-test-logs"
  account_id = "123456789012"
}

run "only_the_accounts_own_services_write" {
  command = plan
  module { source = "./modules/log-bucket" }

  assert {
    condition     = [for statement in jsondecode(aws_s3_bucket_policy.this.policy).Statement : statement.Sid] == ["TlsOnly", "AccessLogsOfBuckets", "AccessLogsOfLoadBalancers"]
    error_message = "Nobody else may write."
  }
  assert {
    condition     = endswith(jsondecode(aws_s3_bucket_policy.this.policy).Statement[2].Resource, "/alb/AWSLogs/123456789012/*")
    error_message = "Load balancers of other accounts must not write here."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration[0].days == 365
    error_message = "Logs must end."
  }
}

run "a_week_of_logs_is_refused" {
  command = plan
  module { source = "./modules/log-bucket" }
  variables {
    retention_days = 7
  }
  expect_failures = [var.retention_days]
}
