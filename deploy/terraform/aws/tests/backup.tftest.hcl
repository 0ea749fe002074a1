mock_provider "aws" {
  override_during = plan
}

mock_provider "aws" {
  alias           = "replica"
  override_during = plan

  mock_resource "aws_backup_vault" {
    defaults = { arn = "arn:aws:backup:eu-west-1:123456789012:backup-vault:axon-test" }
  }
}

variables {
  name            = "axon-test"
  key_arn         = "arn:aws:kms:eu-central-1:123456789012:key/backup"
  replica_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/backup"
  resource_arns   = ["arn:aws:rds:eu-central-1:123456789012:cluster:axon-test"]
}

run "each_backup_is_copied_to_the_other_region" {
  command = plan
  module { source = "./modules/backup" }
  providers = { aws = aws, aws.replica = aws.replica }
  variables {
    every_hours = 4
  }
  assert {
    condition     = one(one(aws_backup_plan.this.rule).copy_action).destination_vault_arn == aws_backup_vault.replica.arn
    error_message = "A backup in the lost region is lost with it."
  }
  assert {
    condition     = one(aws_backup_plan.this.rule).schedule == "cron(0 0/4 * * ? *)" && one(aws_backup_plan.this.rule).lifecycle[0].delete_after == 35
    error_message = "The schedule is not the one that was asked for."
  }
  assert {
    condition     = aws_backup_vault_lock_configuration.this[0].changeable_for_days == null && length(aws_backup_vault_lock_configuration.replica) == 1
    error_message = "Backups must be locked in governance mode, which can be taken back."
  }
}

run "a_plan_for_nothing_and_an_odd_rhythm_are_refused" {
  command = plan
  module { source = "./modules/backup" }
  providers = { aws = aws, aws.replica = aws.replica }
  variables {
    every_hours   = 5
    resource_arns = []
  }
  expect_failures = [var.resource_arns, var.every_hours]
}
