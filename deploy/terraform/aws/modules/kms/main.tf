# One customer managed key for each purpose, rotated every year. Only the named services use a key, and only for this account.

locals {
  # These services call with a principal of their own, not with the rights of who asked them.
  direct = toset(["aps", "cloudwatch", "logs", "sns"])

  statements = {
    for purpose, services in var.purposes : purpose => concat(
      [{
        Sid       = "AdministeredByIam"
        Effect    = "Allow"
        Principal = { AWS = "arn:aws:iam::${var.account_id}:root" }
        Action    = "kms:*"
        Resource  = "*"
      }],
      [for service in sort(setsubtract(services, local.direct)) : {
        Sid       = "UsedThrough${replace(title(replace(service, "-", " ")), "/[^A-Za-z]/", "")}"
        Effect    = "Allow"
        Principal = { AWS = "*" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey", "kms:CreateGrant"]
        Resource  = "*"
        Condition = {
          StringEquals = {
            "kms:ViaService"    = "${service}.${var.region}.amazonaws.com"
            "kms:CallerAccount" = var.account_id
          }
        }
      }],
      [for service in sort(setintersection(services, local.direct)) : {
        Sid       = "UsedBy${replace(title(service), "/[^A-Za-z]/", "")}"
        Effect    = "Allow"
        Principal = { Service = service == "logs" ? "logs.${var.region}.amazonaws.com" : "${service}.amazonaws.com" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
      } if service != "logs"],
      # CloudWatch Logs sends no aws:SourceAccount; it names the log group in the encryption context.
      [for service in setintersection(services, ["logs"]) : {
        Sid       = "UsedByCloudWatchLogs"
        Effect    = "Allow"
        Principal = { Service = "logs.${var.region}.amazonaws.com" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
        Resource  = "*"
        Condition = { ArnLike = { "kms:EncryptionContext:aws:logs:arn" = "arn:aws:logs:${var.region}:${var.account_id}:log-group:*" } }
      }],
    )
  }
}

resource "aws_kms_key" "this" {
  for_each = var.purposes

  description             = "${var.name}: ${each.key}"
  enable_key_rotation     = true
  deletion_window_in_days = var.deletion_window_days
  policy                  = jsonencode({ Version = "2012-10-17", Statement = local.statements[each.key] })
}

resource "aws_kms_alias" "this" {
  for_each = var.purposes

  name          = "alias/${var.name}-${each.key}"
  target_key_id = aws_kms_key.this[each.key].key_id
}
