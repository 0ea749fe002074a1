output "arns" {
  description = "ARN of the key of each purpose."
  value       = { for purpose, key in aws_kms_key.this : purpose => key.arn }
}
