variable "name" {
  description = "Name of the network and prefix of what is in it."
  type        = string
}

variable "cidr" {
  description = "Addresses of the network: a /16, which the module cuts into subnets."
  type        = string

  validation {
    condition     = can(cidrhost(var.cidr, 0)) && endswith(var.cidr, "/16")
    error_message = "cidr must be a /16 such as 10.20.0.0/16; the subnets are cut from it by fixed sizes."
  }
}

variable "zones" {
  description = "The three availability zones that everything is spread over."
  type        = list(string)

  validation {
    condition     = length(var.zones) == 3 && length(distinct(var.zones)) == 3
    error_message = "zones must be three different availability zones: the broker, the database and the quorums need three."
  }
}

variable "gpu_groups" {
  description = "Zone of each GPU node group: a group gets a subnet of its own, in that zone alone."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(var.gpu_groups) <= 8
    error_message = "There is room for the subnets of 8 GPU node groups."
  }
}

variable "nat_per_zone" {
  description = "Whether each zone has a NAT gateway of its own; with one for all, the loss of its zone cuts off the other two."
  type        = bool
  default     = true
}

variable "interface_endpoints" {
  description = "AWS services that are reached inside the network, not over NAT."
  type        = set(string)
  default     = ["ecr.api", "ecr.dkr", "sts", "secretsmanager", "logs", "eks-auth"]
}

variable "region" {
  description = "Region, of which the endpoints' service names are made."
  type        = string
}

variable "log_key_arn" {
  description = "KMS key of the flow logs."
  type        = string
}

variable "log_retention_days" {
  description = "Days for which flow logs are kept."
  type        = number
  default     = 365

  validation {
    condition     = contains([30, 90, 180, 365, 400, 545, 731], var.log_retention_days)
    error_message = "log_retention_days must be one that CloudWatch Logs offers: 30, 90, 180, 365, 400, 545 or 731."
  }
}
