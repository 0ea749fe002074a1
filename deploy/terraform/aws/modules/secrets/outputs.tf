output "arns" {
  description = "ARN of each secret."
  value       = { for name, secret in aws_secretsmanager_secret.this : name => secret.arn }
}

output "names" {
  description = "Name of each secret in Secrets Manager."
  value       = { for name, secret in aws_secretsmanager_secret.this : name => secret.name }
}
