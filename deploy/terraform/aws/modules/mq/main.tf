# RabbitMQ: three nodes in three zones, so that a quorum queue outlives any one of them. Amazon MQ has no streams; Axon uses none.

resource "aws_security_group" "this" {
  name        = "${var.name}-rabbitmq"
  description = "RabbitMQ"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.name}-rabbitmq" }
}

resource "aws_vpc_security_group_ingress_rule" "amqps" {
  for_each = var.client_security_group_ids

  security_group_id            = aws_security_group.this.id
  description                  = "AMQP over TLS from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 5671
  to_port                      = 5671
}

resource "aws_vpc_security_group_ingress_rule" "management" {
  for_each = var.client_security_group_ids

  security_group_id            = aws_security_group.this.id
  description                  = "Management API from ${each.key}: definitions and users"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_mq_configuration" "this" {
  name           = var.name
  description    = "Axon acknowledges a job at its end, which may come after the default of 30 minutes"
  engine_type    = "RabbitMQ"
  engine_version = var.engine_version
  data           = "consumer_timeout = 7200000\n"
}

resource "aws_mq_broker" "this" {
  broker_name                = var.name
  engine_type                = "RabbitMQ"
  engine_version             = var.engine_version
  host_instance_type         = var.instance_type
  deployment_mode            = var.deployment_mode
  publicly_accessible        = false
  auto_minor_version_upgrade = true
  subnet_ids                 = var.deployment_mode == "CLUSTER_MULTI_AZ" ? var.subnet_ids : slice(var.subnet_ids, 0, 1)
  security_groups            = [aws_security_group.this.id]

  configuration {
    id       = aws_mq_configuration.this.id
    revision = aws_mq_configuration.this.latest_revision
  }

  encryption_options {
    use_aws_owned_key = false
    kms_key_id        = var.key_arn
  }

  logs {
    general = true
  }

  maintenance_window_start_time {
    day_of_week = "SUNDAY"
    time_of_day = "05:30"
    time_zone   = "UTC"
  }

  user {
    username = "bootstrap"
    password = var.bootstrap_password
  }

  # Users are made in the broker itself, so that the passwords in use are in no state.
  lifecycle {
    ignore_changes = [user]
  }
}
