variable "name" {
  description = "Name of the vaults and the plan."
  type        = string
}

variable "key_arn" {
  description = "KMS key of the vault."
  type        = string
}

variable "replica_key_arn" {
  description = "KMS key of the vault in the other region."
  type        = string
}

variable "resource_arns" {
  description = "What is backed up: the database cluster and the buckets."
  type        = list(string)

  validation {
    condition     = length(var.resource_arns) > 0
    error_message = "A plan without resources backs nothing up."
  }
}

variable "keep_days" {
  description = "Days for which backups are kept, here and in the other region."
  type        = number
  default     = 35

  validation {
    condition     = var.keep_days >= 7
    error_message = "keep_days must be at least 7: a fault is often found days later."
  }
}

variable "every_hours" {
  description = "Hours between two backups: what the loss of the region costs at most, beside the time of the copy."
  type        = number
  default     = 24

  validation {
    condition     = contains([1, 2, 3, 4, 6, 8, 12, 24], var.every_hours)
    error_message = "every_hours must divide a day: 1, 2, 3, 4, 6, 8, 12 or 24."
  }
}

variable "lock" {
  description = "Whether backups cannot be deleted before their time, by anybody with IAM rights (governance mode)."
  type        = bool
  default     = true
}
