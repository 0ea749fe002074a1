variable "name" {
  description = "Prefix of the secrets, as in axon/prod."
  type        = string
}

variable "secrets" {
  description = "What each secret is for. Terraform makes them empty; their values are put in by hand and are in no state."
  type        = map(string)
}

variable "key_arn" {
  description = "KMS key of the secrets."
  type        = string
}

variable "replica_region" {
  description = "Region that has a copy of each secret, for the loss of this one; null makes none."
  type        = string
  default     = null
}

variable "replica_key_arn" {
  description = "KMS key of the copies, in their region."
  type        = string
  default     = null

  validation {
    condition     = (var.replica_region == null) == (var.replica_key_arn == null)
    error_message = "replica_region and replica_key_arn belong together."
  }
}

variable "recovery_window_days" {
  description = "Days in which the deletion of a secret can be taken back."
  type        = number
  default     = 30
}
