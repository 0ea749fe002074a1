variable "name" {
  description = "Name of the bucket; must be free in all of AWS. The replica's ends in -replica."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{2,54}$", var.name))
    error_message = "name must be 3 to 55 lower-case letters, digits and hyphens."
  }
}

variable "key_arn" {
  description = "KMS key of the bucket."
  type        = string
}

variable "replica_key_arn" {
  description = "KMS key of the replica, in its region."
  type        = string
}

variable "log_bucket" {
  description = "Bucket of the access logs."
  type        = string
}

variable "noncurrent_days" {
  description = "Days for which overwritten and deleted objects can be brought back."
  type        = number
  default     = 30

  validation {
    condition     = var.noncurrent_days >= 7
    error_message = "noncurrent_days must be at least 7."
  }
}

variable "expire_days" {
  description = "Days after which an object goes, here and in the replica; null keeps all. It can be brought back for noncurrent_days more."
  type        = number
  default     = null

  validation {
    condition     = var.expire_days == null ? true : var.expire_days >= 7
    error_message = "expire_days must be at least 7, or null."
  }
}
