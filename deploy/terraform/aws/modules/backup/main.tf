# Backups of the database and the buckets, each with a copy in another region.

resource "aws_backup_vault" "this" {
  name        = var.name
  kms_key_arn = var.key_arn
}

resource "aws_backup_vault" "replica" {
  provider = aws.replica

  name        = var.name
  kms_key_arn = var.replica_key_arn
}

resource "aws_backup_vault_lock_configuration" "this" {
  count = var.lock ? 1 : 0

  backup_vault_name  = aws_backup_vault.this.name
  min_retention_days = 7
  max_retention_days = 366
}

resource "aws_backup_vault_lock_configuration" "replica" {
  count    = var.lock ? 1 : 0
  provider = aws.replica

  backup_vault_name  = aws_backup_vault.replica.name
  min_retention_days = 7
  max_retention_days = 366
}

resource "aws_backup_plan" "this" {
  name = var.name

  rule {
    rule_name         = "regular"
    target_vault_name = aws_backup_vault.this.name
    schedule          = var.every_hours == 24 ? "cron(0 4 * * ? *)" : "cron(0 0/${var.every_hours} * * ? *)"
    start_window      = 60
    completion_window = 360

    lifecycle {
      delete_after = var.keep_days
    }

    copy_action {
      destination_vault_arn = aws_backup_vault.replica.arn

      lifecycle {
        delete_after = var.keep_days
      }
    }
  }
}

resource "aws_iam_role" "this" {
  name = "${var.name}-backup"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "backup.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each = toset([
    "service-role/AWSBackupServiceRolePolicyForBackup",
    "service-role/AWSBackupServiceRolePolicyForRestores",
    "AWSBackupServiceRolePolicyForS3Backup",
    "AWSBackupServiceRolePolicyForS3Restore",
  ])

  role       = aws_iam_role.this.name
  policy_arn = "arn:aws:iam::aws:policy/${each.key}"
}

resource "aws_backup_selection" "this" {
  name         = var.name
  plan_id      = aws_backup_plan.this.id
  iam_role_arn = aws_iam_role.this.arn
  resources    = var.resource_arns
}
