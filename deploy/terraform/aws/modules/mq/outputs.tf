output "id" {
  description = "Identifier of the broker."
  value       = aws_mq_broker.this.id
}

output "arn" {
  description = "ARN of the broker."
  value       = aws_mq_broker.this.arn
}

output "endpoint" {
  description = "Address for AMQP over TLS; of a cluster, the name that leads to all nodes."
  value       = aws_mq_broker.this.instances[0].endpoints[0]
}

output "console_url" {
  description = "Address of the management API."
  value       = aws_mq_broker.this.instances[0].console_url
}
