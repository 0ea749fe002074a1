output "name" {
  description = "Name of the bucket."
  value       = aws_s3_bucket.this.bucket
}

output "arn" {
  description = "ARN of the bucket."
  value       = aws_s3_bucket.this.arn
}

output "replica_name" {
  description = "Name of its replica."
  value       = aws_s3_bucket.replica.bucket
}

output "expire_days" {
  description = "Days after which an object goes; null where it stays."
  value       = var.expire_days
}
