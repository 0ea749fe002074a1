output "endpoint" {
  description = "Name of the primary, which follows a failover."
  value       = aws_elasticache_replication_group.this.primary_endpoint_address
}

output "port" {
  description = "Port, with TLS."
  value       = 6379
}

output "replication_group_id" {
  description = "Identifier, for failover tests and the replacement of the password."
  value       = aws_elasticache_replication_group.this.replication_group_id
}
