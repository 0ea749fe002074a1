variable "name" {
  description = "Prefix of the keys' aliases, such as axon-prod."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,24}$", var.name))
    error_message = "name must be 3 to 25 lower-case letters, digits and hyphens, beginning with a letter."
  }
}

variable "account_id" {
  description = "Account that owns the keys; its administrators manage them by IAM policies."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id must be the 12 digits of an AWS account."
  }
}

variable "region" {
  description = "Region of the keys: the services that may use them are named with it."
  type        = string
}

variable "purposes" {
  description = "One key for each purpose; the value names the AWS services that may use it on the account's behalf, as in rds or logs."
  type        = map(set(string))

  validation {
    condition     = alltrue([for services in values(var.purposes) : length(services) > 0])
    error_message = "Every purpose must name at least one service; a key that nothing may use is a mistake."
  }
}

variable "deletion_window_days" {
  description = "Days in which the deletion of a key can be taken back."
  type        = number
  default     = 30

  validation {
    condition     = var.deletion_window_days >= 7 && var.deletion_window_days <= 30
    error_message = "deletion_window_days must be 7 to 30."
  }
}
