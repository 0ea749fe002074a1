variable "name" {
  description = "Name of the environment's parts, as in axon-prod."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,19}$", var.name))
    error_message = "name must be 3 to 20 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "account_id" {
  description = "The AWS account."
  type        = string
}

variable "region" {
  description = "The region that serves."
  type        = string
}

variable "replica_region" {
  description = "The region that has copies of models, files, backups and secrets, for the loss of the first."
  type        = string

  validation {
    condition     = var.replica_region != var.region
    error_message = "replica_region must be another region: a copy in the same one is lost with it."
  }
}

variable "zones" {
  description = "Three availability zones of the region."
  type        = list(string)
}

variable "cidr" {
  description = "Addresses of the network, a /16."
  type        = string
}

variable "nat_per_zone" {
  description = "Whether each zone has a NAT gateway of its own."
  type        = bool
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes."
  type        = string
}

variable "admin_role_arns" {
  description = "IAM roles that administer the cluster."
  type        = set(string)
}

variable "public_access_cidrs" {
  description = "Addresses from which the cluster's API can be reached over the Internet."
  type        = set(string)
}

variable "node_groups" {
  description = "Groups of CPU nodes: see the module eks."
  type = map(object({
    instance_types = list(string)
    min_size       = number
    max_size       = number
    disk_gib       = optional(number, 100)
    capacity_type  = optional(string, "ON_DEMAND")
    ami_type       = optional(string, "AL2023_x86_64_STANDARD")
    labels         = optional(map(string), {})
    taints         = optional(map(string), {})
  }))
}

variable "gpu_groups" {
  description = "Groups of GPU nodes, each in one zone: see the module gpu-nodes. gpus is the number of an instance's GPUs."
  type = map(object({
    zone                    = string
    instance_type           = string
    gpus                    = number
    min_size                = number
    max_size                = number
    disk_gib                = optional(number, 200)
    efa_interfaces          = optional(number, 0)
    capacity                = optional(string, "on_demand")
    capacity_reservation_id = optional(string)
  }))
}

variable "database" {
  description = "Size of PostgreSQL: see the module rds."
  type = object({
    instance_class        = string
    allocated_storage_gib = number
    iops                  = optional(number)
    engine_version        = optional(string, "16.9")
    backup_retention_days = optional(number, 35)
    backup_every_hours    = optional(number, 24)
  })
}

variable "cache" {
  description = "Size of Valkey: see the module elasticache."
  type = object({
    node_type      = string
    replicas       = number
    engine_version = optional(string, "8.0")
  })
}

variable "broker" {
  description = "Size of RabbitMQ: see the module mq."
  type = object({
    instance_type   = string
    deployment_mode = string
    engine_version  = optional(string, "4.2")
  })
}

variable "search" {
  description = "Size of OpenSearch; null makes none: see the module observability."
  type = object({
    instance_type  = string
    instance_count = number
    disk_gib       = number
    master_type    = optional(string)
  })
  default = null
}

variable "grafana_enabled" {
  description = "Whether to make a Grafana workspace."
  type        = bool
}

variable "certificate_arn" {
  description = "Certificate of the API's name, in ACM."
  type        = string
}

variable "host" {
  description = "The API's name, as in api.example.com."
  type        = string
}

variable "load_balancer" {
  description = "Who makes the load balancer: terraform or ingress. See the module edge."
  type        = string
  default     = "terraform"
}

variable "requests_per_5_minutes" {
  description = "Requests that one address may send in five minutes."
  type        = number
  default     = 6000
}

variable "protected" {
  description = "Whether the database and the load balancer refuse to be deleted, and backups cannot be deleted before their time."
  type        = bool
}

variable "log_retention_days" {
  description = "Days for which logs are kept."
  type        = number
}

variable "broker_bootstrap_password" {
  description = "First password of the broker's administrator, replaced right after."
  type        = string
  sensitive   = true
}

variable "cache_bootstrap_token" {
  description = "First password of the cache, replaced right after."
  type        = string
  sensitive   = true
}

variable "namespace" {
  description = "Namespace of the chart's release."
  type        = string
  default     = "axon"
}

variable "release" {
  description = "Name of the chart's release, with which the names of its service accounts begin."
  type        = string
  default     = "axon"
}

variable "database_restore" {
  description = "For a restore: the cluster and the time that the database is made from; null makes an empty one. See docs/deploy/disaster-recovery.md."
  type        = object({ source_cluster_identifier = string, restore_to_time = string })
  default     = null
}

variable "database_snapshot_arn" {
  description = "For a restore: the snapshot that the database is made from; null makes an empty one."
  type        = string
  default     = null
}
