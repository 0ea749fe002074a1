variable "name" {
  description = "Name of the broker."
  type        = string
}

variable "vpc_id" {
  description = "Network of the broker."
  type        = string
}

variable "subnet_ids" {
  description = "Subnets of the nodes, one in each zone; a single broker takes the first."
  type        = list(string)
}

variable "client_security_group_ids" {
  description = "Security groups that may connect, by a name of yours."
  type        = map(string)
}

variable "engine_version" {
  description = "Version of RabbitMQ. 4.2 and newer run on mq.m7g alone."
  type        = string
  default     = "4.2"

  validation {
    condition     = can(regex("^(3\\.13|4\\.[2-9])$", var.engine_version))
    error_message = "engine_version must be 3.13, 4.2 or newer."
  }
}

variable "instance_type" {
  description = "Type of the nodes."
  type        = string
  default     = "mq.m7g.large"

  validation {
    condition     = startswith(var.instance_type, "mq.m7g.") || startswith(var.engine_version, "3.")
    error_message = "RabbitMQ 4 runs on mq.m7g alone."
  }
}

variable "deployment_mode" {
  description = "CLUSTER_MULTI_AZ has three nodes in three zones; SINGLE_INSTANCE has one, for development."
  type        = string
  default     = "CLUSTER_MULTI_AZ"

  validation {
    condition     = contains(["CLUSTER_MULTI_AZ", "SINGLE_INSTANCE"], var.deployment_mode)
    error_message = "deployment_mode must be CLUSTER_MULTI_AZ or SINGLE_INSTANCE."
  }
}

variable "bootstrap_password" {
  description = "First password of the broker's administrator, 12 characters or more. It is in the state; docs/deploy/aws.md says how it is replaced right after by one that is not."
  type        = string
  sensitive   = true

  validation {
    condition     = length(var.bootstrap_password) >= 12 && length(var.bootstrap_password) <= 250 && !can(regex("[,:= ]", var.bootstrap_password))
    error_message = "bootstrap_password must have 12 to 250 characters and none of comma, colon, equals sign and space."
  }
}

variable "key_arn" {
  description = "KMS key of the messages at rest."
  type        = string
}
