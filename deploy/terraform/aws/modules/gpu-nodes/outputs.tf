output "name" {
  description = "Name of the node group, which is also the nodes' label axon/pool."
  value       = aws_eks_node_group.this.node_group_name
}

output "scheduling" {
  description = "Where pods of this group go: for the chart's worker sets."
  value = {
    nodeSelector = { "axon/pool" = var.name }
    tolerations  = [{ key = "nvidia.com/gpu", operator = "Equal", value = "true", effect = "NoSchedule" }]
    efa          = var.efa_interfaces
  }
}
