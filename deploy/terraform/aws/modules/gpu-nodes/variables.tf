variable "cluster_name" {
  description = "Cluster that the nodes join."
  type        = string
}

variable "name" {
  description = "Name of the node group, as in h100."
  type        = string
}

variable "vpc_id" {
  description = "Network of the nodes."
  type        = string
}

variable "subnet_id" {
  description = "The one subnet of the group: EFA and a cluster placement group work inside one zone."
  type        = string
}

variable "cluster_security_group_id" {
  description = "Security group of the cluster, which the nodes have too."
  type        = string
}

variable "node_role_arn" {
  description = "IAM role of the nodes."
  type        = string
}

variable "disk_key_arn" {
  description = "KMS key of the nodes' disks."
  type        = string
}

variable "instance_type" {
  description = "Type of the instances, as in p5.48xlarge or g6e.12xlarge."
  type        = string

  validation {
    condition     = can(regex("^(g[4-9]|p[3-9])[a-z]*(-[a-z0-9]+)?\\.", var.instance_type))
    error_message = "instance_type must be one with NVIDIA GPUs (families g4 to g9 and p3 to p9)."
  }
}

variable "min_size" {
  description = "Least number of nodes."
  type        = number
  default     = 0
}

variable "max_size" {
  description = "Largest number of nodes."
  type        = number

  validation {
    condition     = var.max_size >= 1 && var.max_size >= var.min_size
    error_message = "max_size must be at least 1 and at least min_size."
  }
}

variable "disk_gib" {
  description = "Size of the root disk: images with CUDA are large. Models are on the instance's own NVMe disks."
  type        = number
  default     = 200
}

variable "efa_interfaces" {
  description = "EFA interfaces of an instance, one on each network card: 32 on p5.48xlarge, 1 on g6e.12xlarge; 0 where ranks do not span hosts."
  type        = number
  default     = 0

  validation {
    condition     = var.efa_interfaces >= 0 && var.efa_interfaces <= 32
    error_message = "efa_interfaces must be 0 to 32."
  }
}

variable "capacity" {
  description = "How the instances are paid: on_demand, spot, reservation (capacity_reservation_id) or block (a Capacity Block for ML, capacity_reservation_id)."
  type        = string
  default     = "on_demand"

  validation {
    condition     = contains(["on_demand", "spot", "reservation", "block"], var.capacity)
    error_message = "capacity must be on_demand, spot, reservation or block."
  }
}

variable "capacity_reservation_id" {
  description = "Capacity reservation or Capacity Block that the nodes are taken from."
  type        = string
  default     = null

  validation {
    condition     = contains(["reservation", "block"], var.capacity) == (var.capacity_reservation_id != null)
    error_message = "capacity_reservation_id is needed with capacity = reservation or block, and must be null otherwise."
  }
}

variable "labels" {
  description = "Further labels of the nodes."
  type        = map(string)
  default     = {}
}
