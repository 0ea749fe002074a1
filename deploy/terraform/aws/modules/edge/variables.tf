variable "name" {
  description = "Name of the load balancer and the firewall."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,24}$", var.name))
    error_message = "name must be 3 to 25 lower-case letters, digits and hyphens: a load balancer's name is short."
  }
}

variable "vpc_id" {
  description = "Network of the load balancer."
  type        = string
}

variable "subnet_ids" {
  description = "Public subnets, one in each zone."
  type        = list(string)
}

variable "certificate_arn" {
  description = "Certificate of the API's name, in ACM."
  type        = string

  validation {
    condition     = startswith(var.certificate_arn, "arn:aws:acm:")
    error_message = "certificate_arn must be the ARN of a certificate in ACM, in the same region."
  }
}

variable "pod_security_group_id" {
  description = "Security group of the nodes, whose pods the load balancer sends requests to."
  type        = string
}

variable "target_port" {
  description = "Port of the edge's pods (nginx of the chart), where they also say at /edge/healthz whether they are well."
  type        = number
  default     = 8080
}

variable "allowed_cidrs" {
  description = "Addresses that may connect."
  type        = set(string)
  default     = ["0.0.0.0/0"]
}

variable "load_balancer" {
  description = "Who makes the load balancer: terraform, with a target group that the chart's pods are bound to; or ingress, the cluster's controller, which takes the certificate, the firewall and the security group from the outputs."
  type        = string
  default     = "terraform"

  validation {
    condition     = contains(["terraform", "ingress"], var.load_balancer)
    error_message = "load_balancer must be terraform or ingress."
  }
}

variable "idle_timeout_s" {
  description = "Seconds of silence after which a connection is closed; a gateway sends an empty chunk after 15 s."
  type        = number
  default     = 300

  validation {
    condition     = var.idle_timeout_s >= 60 && var.idle_timeout_s <= 4000
    error_message = "idle_timeout_s must be 60 to 4000: below that, long answers are cut."
  }
}

variable "deregistration_delay_s" {
  description = "Seconds that a pod which stops is given for its open streams; must be shorter than the gateway's grace of 90 s."
  type        = number
  default     = 60

  validation {
    condition     = var.deregistration_delay_s >= 15 && var.deregistration_delay_s < 90
    error_message = "deregistration_delay_s must be 15 to 89: a gateway is killed after 90 s."
  }
}

variable "requests_per_5_minutes" {
  description = "Requests that one address may send in five minutes before the firewall blocks it."
  type        = number
  default     = 6000

  validation {
    condition     = var.requests_per_5_minutes >= 100
    error_message = "requests_per_5_minutes must be at least 100, the firewall's least."
  }
}

variable "log_bucket" {
  description = "Bucket of the load balancer's access logs."
  type        = string
}

variable "log_key_arn" {
  description = "KMS key of the firewall's log."
  type        = string
}

variable "log_retention_days" {
  description = "Days for which the firewall's log is kept."
  type        = number
  default     = 365
}

variable "deletion_protection" {
  description = "Whether the load balancer refuses to be deleted."
  type        = bool
  default     = true
}
