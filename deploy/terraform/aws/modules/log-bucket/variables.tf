variable "name" {
  description = "Name of the bucket; must be free in all of AWS."
  type        = string
}

variable "account_id" {
  description = "Account whose buckets and load balancers write here."
  type        = string
}

variable "retention_days" {
  description = "Days for which logs are kept."
  type        = number
  default     = 365

  validation {
    condition     = var.retention_days >= 30
    error_message = "retention_days must be at least 30: what happened last month must still be there."
  }
}
