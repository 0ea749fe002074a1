output "prometheus_arn" {
  description = "ARN of the Prometheus workspace."
  value       = aws_prometheus_workspace.this.arn
}

output "remote_write_url" {
  description = "Where the collector sends metrics, signed with SigV4."
  value       = "${aws_prometheus_workspace.this.prometheus_endpoint}api/v1/remote_write"
}

output "query_url" {
  description = "Where KEDA and Grafana ask for metrics."
  value       = aws_prometheus_workspace.this.prometheus_endpoint
}

output "grafana_endpoint" {
  description = "Address of Grafana; null without one."
  value       = one(aws_grafana_workspace.this[*].endpoint)
}

output "search_endpoint" {
  description = "Address of the search domain; null without one."
  value       = one([for domain in aws_opensearch_domain.this : domain.endpoint])
}

output "search_arn" {
  description = "ARN of the search domain; null without one."
  value       = var.search == null ? null : local.domain
}

output "alerts_topic_arn" {
  description = "Topic of the alerts, to which those who are called subscribe."
  value       = aws_sns_topic.alerts.arn
}
