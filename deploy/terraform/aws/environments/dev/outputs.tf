output "helm_values" {
  description = "Values for the chart, as YAML: terraform output -raw helm_values > values-aws.yaml"
  value       = yamlencode(module.platform.helm_values)
}

output "cluster_name" {
  description = "Name of the cluster, for aws eks update-kubeconfig."
  value       = module.platform.cluster_name
}

output "dns_name" {
  description = "Name of the load balancer, to which your record of the API's name leads."
  value       = module.platform.dns_name
}

output "dns_zone_id" {
  description = "Hosted zone of that name, for an alias record."
  value       = module.platform.dns_zone_id
}

output "services" {
  description = "Addresses of the services, of which the secrets' URLs are made."
  value       = module.platform.services
}

output "secret_names" {
  description = "Secrets that wait for their values."
  value       = module.platform.secret_names
}

output "database_owner_secret_arn" {
  description = "Secret with the database owner's password, which RDS rotates."
  value       = module.platform.database_owner_secret_arn
}

output "buckets" {
  description = "Buckets, and their replicas in the other region."
  value       = module.platform.buckets
}

output "observability" {
  description = "Where metrics, logs and alerts go."
  value       = module.platform.observability
}

output "service_accounts" {
  description = "Service accounts that have rights in AWS, as namespace/name."
  value       = module.platform.service_accounts
}

output "backup" {
  description = "The vaults of the backups, and the role that restores."
  value       = module.platform.backup
}
