variable "name" {
  description = "Name of the workspaces and the search domain."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,27}$", var.name))
    error_message = "name must be 3 to 28 lower-case letters, digits and hyphens: a search domain's name is short."
  }
}

variable "account_id" {
  description = "Account of the workspaces."
  type        = string
}

variable "region" {
  description = "Region of the workspaces."
  type        = string
}

variable "vpc_id" {
  description = "Network of the search domain."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the search domain, one in each zone."
  type        = list(string)
}

variable "client_security_group_ids" {
  description = "Security groups that may connect to the search domain, by a name of yours."
  type        = map(string)
}

variable "rules" {
  description = "Prometheus rule files, by name: those of deploy/observability/prometheus."
  type        = map(string)
  default     = {}
}

variable "grafana_enabled" {
  description = "Whether to make a Grafana workspace; it needs IAM Identity Center in the organisation."
  type        = bool
  default     = true
}

variable "search" {
  description = "Size of the OpenSearch domain for logs; null makes none, and logs go to CloudWatch alone."
  type = object({
    instance_type  = string
    instance_count = number
    disk_gib       = number
    master_type    = optional(string)
  })
  default = null

  validation {
    condition     = var.search == null || try(contains([1, 2], var.search.instance_count) || var.search.instance_count % 3 == 0, false)
    error_message = "search.instance_count must be 1 or 2 for development, or a multiple of 3 for three zones."
  }
}

variable "search_writer_role_arns" {
  description = "Roles that may write to and read from the search domain: the collector's."
  type        = list(string)
  default     = []
}

variable "key_arn" {
  description = "KMS key of metrics, logs and alerts."
  type        = string
}

variable "log_retention_days" {
  description = "Days for which the services' own logs are kept."
  type        = number
  default     = 365
}
