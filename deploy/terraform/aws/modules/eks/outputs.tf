output "name" {
  description = "Name of the cluster."
  value       = aws_eks_cluster.this.name
}

output "endpoint" {
  description = "Address of the cluster's API."
  value       = aws_eks_cluster.this.endpoint
}

output "arn" {
  description = "ARN of the cluster."
  value       = aws_eks_cluster.this.arn
}

output "security_group_id" {
  description = "Security group of the control plane and of all nodes."
  value       = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
}

output "node_role_arn" {
  description = "Role of the nodes, which GPU nodes take too."
  value       = aws_iam_role.node.arn
}
