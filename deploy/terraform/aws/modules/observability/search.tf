# OpenSearch for the log lines, inside the network, reached by roles alone.

locals {
  searches = var.search == null ? {} : { this = var.search }
  domain   = "arn:aws:es:${var.region}:${var.account_id}:domain/${var.name}"
}

resource "aws_security_group" "search" {
  for_each = local.searches

  name        = "${var.name}-search"
  description = "OpenSearch"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.name}-search" }
}

resource "aws_vpc_security_group_ingress_rule" "search" {
  for_each = var.search == null ? {} : var.client_security_group_ids

  security_group_id            = aws_security_group.search["this"].id
  description                  = "HTTPS from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_cloudwatch_log_group" "search" {
  for_each = var.search == null ? toset([]) : toset(["ES_APPLICATION_LOGS", "AUDIT_LOGS", "SEARCH_SLOW_LOGS", "INDEX_SLOW_LOGS"])

  name              = "/axon/${var.name}/search/${lower(each.key)}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.key_arn
}

resource "aws_cloudwatch_log_resource_policy" "search" {
  for_each = local.searches

  policy_name = "${var.name}-search"
  policy_document = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "es.amazonaws.com" }
      Action    = ["logs:PutLogEvents", "logs:CreateLogStream"]
      Resource  = "arn:aws:logs:${var.region}:${var.account_id}:log-group:/axon/${var.name}/search/*"
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

# The domain's administrator is a role that people take; no password is anywhere.
resource "aws_iam_role" "search_admin" {
  for_each = local.searches

  name = "${var.name}-search-admin"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::${var.account_id}:root" }
      Action    = "sts:AssumeRole"
      Condition = { Bool = { "aws:MultiFactorAuthPresent" = "true" } }
    }]
  })
}

resource "aws_opensearch_domain" "this" {
  for_each = local.searches

  domain_name    = var.name
  engine_version = "OpenSearch_2.19"

  cluster_config {
    instance_type            = each.value.instance_type
    instance_count           = each.value.instance_count
    zone_awareness_enabled   = each.value.instance_count >= 3
    dedicated_master_enabled = each.value.master_type != null
    dedicated_master_type    = each.value.master_type
    dedicated_master_count   = each.value.master_type == null ? null : 3

    dynamic "zone_awareness_config" {
      for_each = each.value.instance_count >= 3 ? [3] : []
      content {
        availability_zone_count = zone_awareness_config.value
      }
    }
  }

  ebs_options {
    ebs_enabled = true
    volume_type = "gp3"
    volume_size = each.value.disk_gib
  }

  vpc_options {
    subnet_ids         = each.value.instance_count >= 3 ? var.subnet_ids : slice(var.subnet_ids, 0, 1)
    security_group_ids = [aws_security_group.search["this"].id]
  }

  encrypt_at_rest {
    enabled    = true
    kms_key_id = var.key_arn
  }

  node_to_node_encryption {
    enabled = true
  }

  domain_endpoint_options {
    enforce_https       = true
    tls_security_policy = "Policy-Min-TLS-1-2-PFS-2023-10"
  }

  advanced_security_options {
    enabled                        = true
    anonymous_auth_enabled         = false
    internal_user_database_enabled = false

    master_user_options {
      master_user_arn = aws_iam_role.search_admin["this"].arn
    }
  }

  access_policies = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = concat([aws_iam_role.search_admin["this"].arn], var.search_writer_role_arns) }
      Action    = ["es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut"]
      Resource  = "${local.domain}/*"
    }]
  })

  dynamic "log_publishing_options" {
    for_each = aws_cloudwatch_log_group.search
    content {
      log_type                 = log_publishing_options.key
      cloudwatch_log_group_arn = log_publishing_options.value.arn
    }
  }

  depends_on = [aws_cloudwatch_log_resource_policy.search]
}
