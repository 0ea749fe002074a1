# The places of the secrets, without their values.

resource "aws_secretsmanager_secret" "this" {
  for_each = var.secrets

  name                    = "${var.name}/${each.key}"
  description             = each.value
  kms_key_id              = var.key_arn
  recovery_window_in_days = var.recovery_window_days

  dynamic "replica" {
    for_each = var.replica_region == null ? [] : [var.replica_region]
    content {
      region     = replica.value
      kms_key_id = var.replica_key_arn
    }
  }
}
