# PostgreSQL as a Multi-AZ DB cluster: a commit is on two of three zones, and a failover takes less than 35 s. The password
# is made, kept and rotated by RDS in Secrets Manager: Terraform never sees it.

resource "aws_db_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_security_group" "this" {
  name        = "${var.name}-postgres"
  description = "PostgreSQL"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.name}-postgres" }
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  for_each = var.client_security_group_ids

  security_group_id            = aws_security_group.this.id
  description                  = "PostgreSQL from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_rds_cluster_parameter_group" "this" {
  name        = var.name
  family      = "postgres${split(".", var.engine_version)[0]}"
  description = "TLS alone, and what is slow or waits is logged"

  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  parameter {
    name  = "log_min_duration_statement"
    value = "1000"
  }

  parameter {
    name  = "log_lock_waits"
    value = "1"
  }

  # Statements may hold what people said, and passwords: the log has only those that are slow, without their values.
  parameter {
    name  = "log_statement"
    value = "none"
  }

  parameter {
    name  = "log_parameter_max_length"
    value = "0"
  }

  parameter {
    name  = "log_parameter_max_length_on_error"
    value = "0"
  }
}

resource "aws_iam_role" "monitoring" {
  name = "${var.name}-postgres-monitoring"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "monitoring.rds.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "monitoring" {
  role       = aws_iam_role.monitoring.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/AmazonRDSEnhancedMonitoringRole"
}

resource "aws_rds_cluster" "this" {
  cluster_identifier        = var.name
  engine                    = "postgres"
  engine_version            = var.engine_version
  db_cluster_instance_class = var.instance_class
  database_name             = "axon"

  storage_type      = var.iops == null ? "gp3" : "io1"
  allocated_storage = var.allocated_storage_gib
  iops              = var.iops
  storage_encrypted = true
  kms_key_id        = var.key_arn

  master_username               = "axon_owner"
  manage_master_user_password   = true
  master_user_secret_kms_key_id = var.key_arn

  db_subnet_group_name            = aws_db_subnet_group.this.name
  vpc_security_group_ids          = [aws_security_group.this.id]
  db_cluster_parameter_group_name = aws_rds_cluster_parameter_group.this.name

  backup_retention_period      = var.backup_retention_days
  preferred_backup_window      = "02:00-03:00"
  preferred_maintenance_window = "sun:03:30-sun:04:30"
  copy_tags_to_snapshot        = true
  deletion_protection          = var.deletion_protection
  skip_final_snapshot          = false
  final_snapshot_identifier    = "${var.name}-final"
  snapshot_identifier          = var.snapshot_arn

  enabled_cloudwatch_logs_exports       = ["postgresql"]
  performance_insights_enabled          = true
  performance_insights_kms_key_id       = var.key_arn
  performance_insights_retention_period = 7
  monitoring_interval                   = 60
  monitoring_role_arn                   = aws_iam_role.monitoring.arn

  dynamic "restore_to_point_in_time" {
    for_each = var.restore_to_point_in_time == null ? [] : [var.restore_to_point_in_time]
    content {
      source_cluster_identifier = restore_to_point_in_time.value.source_cluster_identifier
      restore_to_time           = restore_to_point_in_time.value.restore_to_time
    }
  }

  # What a cluster was made from is history once it is there: naming it no more must not replace the cluster.
  lifecycle {
    ignore_changes = [snapshot_identifier, restore_to_point_in_time]
  }
}
