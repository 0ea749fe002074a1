mock_provider "aws" {
  override_during = plan
}

mock_provider "aws" {
  alias           = "replica"
  override_during = plan
}

variables {
  name            = "axon-test-models"
  key_arn         = "arn:aws:kms:eu-central-1:123456789012:key/storage"
  replica_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/storage"
  log_bucket      = "logs"
}

run "both_buckets_are_private_and_everything_is_replicated" {
  command = plan
  module { source = "./modules/models-bucket" }
  providers = { aws = aws, aws.replica = aws.replica }

  assert {
    condition     = aws_s3_bucket_public_access_block.this.restrict_public_buckets && aws_s3_bucket_public_access_block.replica.restrict_public_buckets
    error_message = "Nobody outside may read."
  }
  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled" && aws_s3_bucket_versioning.replica.versioning_configuration[0].status == "Enabled"
    error_message = "Replication needs versions, and so does a mistake."
  }
  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.replica.rule).apply_server_side_encryption_by_default[0].kms_master_key_id == var.replica_key_arn
    error_message = "The replica must have a key of its own region."
  }
  assert {
    condition     = jsondecode(aws_s3_bucket_policy.this.policy).Statement[0].Effect == "Deny"
    error_message = "Requests without TLS must be denied."
  }
  assert {
    condition     = aws_s3_bucket_replication_configuration.this.rule[0].status == "Enabled" && aws_s3_bucket_replication_configuration.this.rule[0].destination[0].replication_time[0].time[0].minutes == 15
    error_message = "Replication with a promised time is missing."
  }
  assert {
    condition     = aws_s3_bucket_replication_configuration.this.rule[0].source_selection_criteria[0].sse_kms_encrypted_objects[0].status == "Enabled"
    error_message = "Encrypted objects would be left out."
  }
  assert {
    condition     = !strcontains(aws_iam_role_policy.replication.policy, "\"s3:*\"")
    error_message = "The role must have no more rights than it needs."
  }
}

run "objects_stay_unless_days_are_given" {
  command = plan
  module { source = "./modules/models-bucket" }
  providers = { aws = aws, aws.replica = aws.replica }

  assert {
    condition     = length(aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration) == 0 && length(aws_s3_bucket_lifecycle_configuration.replica.rule[0].expiration) == 0
    error_message = "A model must not go by itself."
  }
}

run "archives_go_here_and_in_the_replica" {
  command = plan
  module { source = "./modules/models-bucket" }
  providers = { aws = aws, aws.replica = aws.replica }
  variables {
    expire_days = 35
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration[0].days == 35
    error_message = "Archives must end."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.replica.rule[0].expiration[0].days == 35
    error_message = "A rule's deletions are not replicated: the replica needs the rule too."
  }
}

run "archives_of_a_few_days_are_refused" {
  command = plan
  module { source = "./modules/models-bucket" }
  providers = { aws = aws, aws.replica = aws.replica }
  variables {
    expire_days = 3
  }
  expect_failures = [var.expire_days]
}

run "a_name_with_capitals_is_refused" {
  command = plan
  module { source = "./modules/models-bucket" }
  providers = { aws = aws, aws.replica = aws.replica }
  variables {
    name = "Axon_Models"
  }
  expect_failures = [var.name]
}
