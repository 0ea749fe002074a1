output "endpoint" {
  description = "Name of the writer, which follows a failover."
  value       = aws_rds_cluster.this.endpoint
}

output "reader_endpoint" {
  description = "Name of the readable standbys."
  value       = aws_rds_cluster.this.reader_endpoint
}

output "arn" {
  description = "ARN of the cluster."
  value       = aws_rds_cluster.this.arn
}

output "owner_secret_arn" {
  description = "Secret with the owner's name and password, which RDS rotates."
  value       = aws_rds_cluster.this.master_user_secret[0].secret_arn
}
