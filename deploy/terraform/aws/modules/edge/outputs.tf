output "dns_name" {
  description = "Name of the load balancer, for your DNS record; null if the cluster's controller makes it."
  value       = one(aws_lb.this[*].dns_name)
}

output "zone_id" {
  description = "Hosted zone of that name, for an alias record."
  value       = one(aws_lb.this[*].zone_id)
}

output "arn" {
  description = "ARN of the load balancer."
  value       = one(aws_lb.this[*].arn)
}

output "target_group_arn" {
  description = "Target group that the edge's pods are bound to; null if the cluster's controller makes the load balancer."
  value       = one(aws_lb_target_group.this[*].arn)
}

output "security_group_id" {
  description = "Security group of the load balancer."
  value       = aws_security_group.this.id
}

output "web_acl_arn" {
  description = "The firewall, for an Ingress whose load balancer the cluster's controller makes."
  value       = aws_wafv2_web_acl.this.arn
}
