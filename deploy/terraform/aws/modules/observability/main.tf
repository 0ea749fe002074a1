# Metrics and alerts: Amazon Managed Prometheus with the repository's own rules, and a topic for those who are called.

resource "aws_cloudwatch_log_group" "prometheus" {
  name              = "/aws/vendedlogs/axon/${var.name}/prometheus"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.key_arn
}

resource "aws_prometheus_workspace" "this" {
  alias       = var.name
  kms_key_arn = var.key_arn

  logging_configuration {
    log_group_arn = "${aws_cloudwatch_log_group.prometheus.arn}:*"
  }
}

resource "aws_prometheus_rule_group_namespace" "this" {
  for_each = var.rules

  name         = each.key
  workspace_id = aws_prometheus_workspace.this.id
  data         = each.value
}

resource "aws_sns_topic" "alerts" {
  name              = "${var.name}-alerts"
  kms_master_key_id = var.key_arn
}

resource "aws_sns_topic_policy" "alerts" {
  arn = aws_sns_topic.alerts.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AlertsOfPrometheus"
      Effect    = "Allow"
      Principal = { Service = "aps.amazonaws.com" }
      Action    = ["sns:Publish", "sns:GetTopicAttributes"]
      Resource  = aws_sns_topic.alerts.arn
      Condition = {
        StringEquals = { "AWS:SourceAccount" = var.account_id }
        ArnEquals    = { "aws:SourceArn" = aws_prometheus_workspace.this.arn }
      }
    }]
  })
}

resource "aws_prometheus_alert_manager_definition" "this" {
  workspace_id = aws_prometheus_workspace.this.id
  definition = yamlencode({
    alertmanager_config = yamlencode({
      route = {
        receiver        = "alerts"
        group_by        = ["alertname", "model"]
        group_wait      = "30s"
        group_interval  = "5m"
        repeat_interval = "4h"
      }
      receivers = [{
        name = "alerts"
        sns_configs = [{
          topic_arn = aws_sns_topic.alerts.arn
          sigv4     = { region = var.region }
          subject   = "{{ .CommonLabels.severity }}: {{ .CommonLabels.alertname }}"
        }]
      }]
    })
  })

  depends_on = [aws_sns_topic_policy.alerts]
}
