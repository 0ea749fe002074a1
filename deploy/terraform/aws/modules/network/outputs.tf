output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "cidr" {
  description = "Its addresses."
  value       = aws_vpc.this.cidr_block
}

output "public_subnet_ids" {
  description = "Subnets of the load balancer, one in each zone."
  value       = [for zone in var.zones : aws_subnet.public[zone].id]
}

output "public_subnet_cidrs" {
  description = "Addresses of these subnets, from which the load balancer speaks to the pods."
  value       = [for zone in var.zones : aws_subnet.public[zone].cidr_block]
}

output "private_subnet_ids" {
  description = "Subnets of the control plane and the CPU nodes, one in each zone."
  value       = [for zone in var.zones : aws_subnet.private[zone].id]
}

output "data_subnet_ids" {
  description = "Subnets of the database, the cache, the broker and the search domain, one in each zone."
  value       = [for zone in var.zones : aws_subnet.data[zone].id]
}

output "gpu_subnet_ids" {
  description = "The subnet of each GPU node group."
  value       = { for group, subnet in aws_subnet.gpu : group => subnet.id }
}
