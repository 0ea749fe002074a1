# Valkey with replicas in other zones. Replication is asynchronous: a failover may lose the last writes, which workers repeat.

resource "aws_elasticache_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnet_ids
}

resource "aws_security_group" "this" {
  name        = "${var.name}-valkey"
  description = "Valkey"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.name}-valkey" }
}

resource "aws_vpc_security_group_ingress_rule" "this" {
  for_each = var.client_security_group_ids

  security_group_id            = aws_security_group.this.id
  description                  = "Valkey from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 6379
  to_port                      = 6379
}

resource "aws_elasticache_parameter_group" "this" {
  name        = var.name
  family      = "valkey${split(".", var.engine_version)[0]}"
  description = "Nothing is evicted: a lost lease or token log is worse than a refused write"

  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_cloudwatch_log_group" "slow" {
  name              = "/axon/${var.name}/valkey-slow"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.log_key_arn
}

resource "aws_elasticache_replication_group" "this" {
  replication_group_id = var.name
  description          = "Token logs, leases and accounts of ${var.name}"
  engine               = "valkey"
  engine_version       = var.engine_version
  node_type            = var.node_type
  parameter_group_name = aws_elasticache_parameter_group.this.name
  port                 = 6379

  num_cache_clusters         = 1 + var.replicas
  automatic_failover_enabled = true
  multi_az_enabled           = true
  auto_minor_version_upgrade = true

  subnet_group_name  = aws_elasticache_subnet_group.this.name
  security_group_ids = [aws_security_group.this.id]

  at_rest_encryption_enabled = true
  kms_key_id                 = var.key_arn
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  auth_token                 = var.bootstrap_token

  maintenance_window       = "sun:04:30-sun:05:30"
  snapshot_retention_limit = var.snapshot_retention_days
  snapshot_window          = var.snapshot_retention_days > 0 ? "01:00-02:00" : null

  log_delivery_configuration {
    destination      = aws_cloudwatch_log_group.slow.name
    destination_type = "cloudwatch-logs"
    log_format       = "json"
    log_type         = "slow-log"
  }

  # The token is replaced by hand, so that the one in use is in no state.
  lifecycle {
    ignore_changes = [auth_token, auth_token_update_strategy]
  }
}
