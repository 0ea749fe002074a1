variable "name" {
  description = "Identifier of the replication group."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,39}$", var.name))
    error_message = "name must be at most 40 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "vpc_id" {
  description = "Network of the cache."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the nodes, one in each zone."
  type        = list(string)
}

variable "client_security_group_ids" {
  description = "Security groups that may connect, by a name of yours."
  type        = map(string)
}

variable "engine_version" {
  description = "Version of Valkey."
  type        = string
  default     = "8.0"

  validation {
    condition     = can(regex("^(7\\.2|[89]\\.[0-9]+)$", var.engine_version))
    error_message = "engine_version must be one of Valkey's: 7.2, 8.0 or newer."
  }
}

variable "node_type" {
  description = "Type of the nodes, as in cache.r7g.large; all token logs of running streams must fit into one."
  type        = string
}

variable "replicas" {
  description = "Replicas beside the primary. With two, a copy is left in another zone while a lost one is replaced."
  type        = number
  default     = 2

  validation {
    condition     = var.replicas >= 1 && var.replicas <= 5
    error_message = "replicas must be 1 to 5: without one there is no failover."
  }
}

variable "snapshot_retention_days" {
  description = "Days for which daily snapshots are kept; 0 makes none. Nothing in the cache is needed for a restore."
  type        = number
  default     = 1
}

variable "bootstrap_token" {
  description = "First password of the cache, 16 to 128 characters. It is in the state; docs/deploy/aws.md says how it is replaced right after by one that is not."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.bootstrap_token) >= 16 && length(var.bootstrap_token) <= 128
    error_message = "bootstrap_token must have 16 to 128 characters."
  }
}

variable "key_arn" {
  description = "KMS key of the data at rest."
  type        = string
}

variable "log_key_arn" {
  description = "KMS key of the slow log."
  type        = string
}

variable "log_retention_days" {
  description = "Days for which the slow log is kept."
  type        = number
  default     = 365
}
