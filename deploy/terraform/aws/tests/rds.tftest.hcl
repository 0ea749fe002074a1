mock_provider "aws" {
  override_during = plan

  mock_resource "aws_rds_cluster" {
    defaults = {
      master_user_secret = [{ secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!cluster", kms_key_id = "", secret_status = "active" }]
    }
  }
}

variables {
  name                      = "axon-test"
  vpc_id                    = "vpc-1"
  subnet_ids                = ["subnet-a", "subnet-b", "subnet-c"]
  client_security_group_ids = { nodes = "sg-cluster" }
  instance_class            = "db.m6gd.large"
  allocated_storage_gib     = 100
  key_arn                   = "arn:aws:kms:eu-central-1:123456789012:key/data"
}

run "three_instances_encrypted_and_the_password_is_rdss" {
  command = plan
  module { source = "./modules/rds" }

  assert {
    condition     = aws_rds_cluster.this.db_cluster_instance_class == "db.m6gd.large" && aws_rds_cluster.this.storage_encrypted
    error_message = "It must be an encrypted Multi-AZ DB cluster."
  }
  assert {
    condition     = aws_rds_cluster.this.manage_master_user_password && aws_rds_cluster.this.master_password == null && aws_rds_cluster.this.master_user_secret_kms_key_id == var.key_arn
    error_message = "RDS must make the password, and Terraform must not know it."
  }
  assert {
    condition     = aws_rds_cluster.this.deletion_protection && aws_rds_cluster.this.backup_retention_period == 35 && !aws_rds_cluster.this.skip_final_snapshot
    error_message = "The data must outlive a mistake."
  }
  assert {
    condition     = { for parameter in aws_rds_cluster_parameter_group.this.parameter : parameter.name => parameter.value }["rds.force_ssl"] == "1" && aws_rds_cluster_parameter_group.this.family == "postgres16"
    error_message = "TLS must be demanded."
  }
  assert {
    condition     = output.owner_secret_arn == "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!cluster"
    error_message = "The password's secret is missing."
  }
  assert {
    condition     = [for rule in aws_vpc_security_group_ingress_rule.this : [rule.referenced_security_group_id, rule.from_port]] == [["sg-cluster", 5432]]
    error_message = "Only the nodes may connect."
  }
}

run "a_restore_to_a_point_in_time" {
  command = plan
  module { source = "./modules/rds" }
  variables {
    restore_to_point_in_time = { source_cluster_identifier = "axon-old", restore_to_time = "2026-01-02T03:04:05Z" }
  }
  assert {
    condition     = aws_rds_cluster.this.restore_to_point_in_time[0].source_cluster_identifier == "axon-old"
    error_message = "The cluster must be made from the other's backups."
  }
}

run "a_class_without_local_disks_and_no_backups_are_refused" {
  command = plan
  module { source = "./modules/rds" }
  variables {
    backup_retention_days = 0
    instance_class        = "db.m6g.large"
  }
  expect_failures = [var.instance_class, var.backup_retention_days]
}
