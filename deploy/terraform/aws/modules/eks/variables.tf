variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes."
  type        = string
  default     = "1.33"

  validation {
    condition     = can(regex("^1\\.(3[1-9]|[4-9][0-9])$", var.kubernetes_version))
    error_message = "kubernetes_version must be 1.31 or newer, as in 1.33: the chart is checked from 1.31 on."
  }
}

variable "subnet_ids" {
  description = "Subnets of the control plane and the CPU nodes, one in each of three zones."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) == 3
    error_message = "subnet_ids must be three, one in each zone."
  }
}

variable "secrets_key_arn" {
  description = "KMS key that encrypts the cluster's Secrets."
  type        = string
}

variable "disk_key_arn" {
  description = "KMS key of the nodes' disks."
  type        = string
}

variable "log_key_arn" {
  description = "KMS key of the control plane's logs."
  type        = string
}

variable "log_retention_days" {
  description = "Days for which the control plane's logs are kept."
  type        = number
  default     = 365
}

variable "public_access_cidrs" {
  description = "Addresses from which the cluster's API can be reached over the Internet; with none, it is reached inside the network alone."
  type        = set(string)
  default     = []

  validation {
    condition     = !contains(var.public_access_cidrs, "0.0.0.0/0")
    error_message = "Name the addresses of your offices or runners; 0.0.0.0/0 opens the cluster's API to everybody."
  }
}

variable "admin_role_arns" {
  description = "IAM roles that administer the cluster."
  type        = set(string)

  validation {
    condition     = length(var.admin_role_arns) > 0
    error_message = "At least one role must administer the cluster: whoever creates it gets no rights by that."
  }
}

variable "node_groups" {
  description = "Groups of CPU nodes, each over all three zones. Taints keep other pods away, as in {dedicated = \"data\"}."
  type = map(object({
    instance_types = list(string)
    min_size       = number
    max_size       = number
    disk_gib       = optional(number, 100)
    capacity_type  = optional(string, "ON_DEMAND")
    ami_type       = optional(string, "AL2023_x86_64_STANDARD")
    labels         = optional(map(string), {})
    taints         = optional(map(string), {})
  }))

  validation {
    condition     = alltrue([for group in values(var.node_groups) : group.min_size >= 1 && group.max_size >= group.min_size])
    error_message = "Every group needs min_size >= 1 and max_size >= min_size."
  }

  validation {
    condition     = alltrue([for group in values(var.node_groups) : contains(["ON_DEMAND", "SPOT"], group.capacity_type)])
    error_message = "capacity_type must be ON_DEMAND or SPOT."
  }
}

variable "addons" {
  description = "Add-ons of the cluster and their versions; null takes the newest that fits the cluster's version."
  type        = map(string)
  default = {
    vpc-cni                = null
    kube-proxy             = null
    coredns                = null
    eks-pod-identity-agent = null
    aws-ebs-csi-driver     = null
    metrics-server         = null
  }
}
