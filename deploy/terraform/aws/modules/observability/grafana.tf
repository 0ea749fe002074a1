# Amazon Managed Grafana reads metrics, and nothing else.

resource "aws_iam_role" "grafana" {
  count = var.grafana_enabled ? 1 : 0

  name = "${var.name}-grafana"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "grafana.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "grafana" {
  count = var.grafana_enabled ? 1 : 0

  name = "read"
  role = aws_iam_role.grafana[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["aps:QueryMetrics", "aps:GetSeries", "aps:GetLabels", "aps:GetMetricMetadata", "aps:DescribeWorkspace"]
        Resource = aws_prometheus_workspace.this.arn
      },
      { Effect = "Allow", Action = ["aps:ListWorkspaces"], Resource = "*" },
    ]
  })
}

resource "aws_grafana_workspace" "this" {
  count = var.grafana_enabled ? 1 : 0

  name                     = var.name
  account_access_type      = "CURRENT_ACCOUNT"
  authentication_providers = ["AWS_SSO"]
  permission_type          = "SERVICE_MANAGED"
  role_arn                 = aws_iam_role.grafana[0].arn
  data_sources             = ["PROMETHEUS"]
  grafana_version          = "10.4"
}
