variable "name" {
  description = "Identifier of the database cluster."
  type        = string
}

variable "vpc_id" {
  description = "Network of the database."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the three instances, one in each zone."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) == 3
    error_message = "subnet_ids must be three: a Multi-AZ DB cluster has a writer and two readable standbys in three zones."
  }
}

variable "client_security_group_ids" {
  description = "Security groups that may connect, by a name of yours."
  type        = map(string)
}

variable "engine_version" {
  description = "Version of PostgreSQL."
  type        = string
  default     = "16.9"

  validation {
    condition     = can(regex("^(1[5-9])\\.[0-9]+$", var.engine_version))
    error_message = "engine_version must be 15 or newer with its minor version, as in 16.9."
  }
}

variable "instance_class" {
  description = "Class of the three instances; a Multi-AZ DB cluster needs one with local NVMe disks (the d in db.m6gd)."
  type        = string

  validation {
    condition     = can(regex("^db\\.[a-z][0-9]g?i?d\\.", var.instance_class))
    error_message = "instance_class must have local disks, as db.c6gd.medium, db.m6gd.large or db.r6gd.xlarge."
  }
}

variable "allocated_storage_gib" {
  description = "Size of the disks."
  type        = number

  validation {
    condition     = var.allocated_storage_gib >= 20
    error_message = "allocated_storage_gib must be at least 20."
  }
}

variable "iops" {
  description = "Provisioned operations a second (io2 and io1); null takes what gp3 includes."
  type        = number
  default     = null
}

variable "backup_retention_days" {
  description = "Days of point-in-time recovery."
  type        = number
  default     = 35

  validation {
    condition     = var.backup_retention_days >= 1 && var.backup_retention_days <= 35
    error_message = "backup_retention_days must be 1 to 35; 0 would switch point-in-time recovery off."
  }
}

variable "deletion_protection" {
  description = "Whether the database refuses to be deleted."
  type        = bool
  default     = true
}

variable "key_arn" {
  description = "KMS key of the disks, the snapshots, the insights and the password's secret."
  type        = string
}

variable "restore_to_point_in_time" {
  description = "Makes the cluster from another one's backups, as it was at a time (UTC, RFC 3339), for a restore; null makes an empty one."
  type        = object({ source_cluster_identifier = string, restore_to_time = string })
  default     = null
}

variable "snapshot_arn" {
  description = "Makes the cluster from a snapshot, for a restore; null makes an empty one."
  type        = string
  default     = null

  validation {
    condition     = var.snapshot_arn == null || var.restore_to_point_in_time == null
    error_message = "A cluster is made from a snapshot or from a point in time, not both."
  }
}
