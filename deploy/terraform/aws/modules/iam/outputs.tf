output "role_arns" {
  description = "Role of each identity."
  value       = { for name, role in aws_iam_role.this : name => role.arn }
}

output "service_accounts" {
  description = "Service account of each identity, as namespace/name: the chart's must have the same."
  value       = { for name, identity in var.identities : name => "${identity.namespace}/${identity.service_account}" }
}

output "actions" {
  description = "What each identity may do, wherever it may."
  value       = { for name, identity in var.identities : name => sort(distinct(flatten(identity.statements[*].actions))) }
}
