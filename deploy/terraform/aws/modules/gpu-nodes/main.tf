# One group of GPU nodes: one zone, one subnet, close together, and for pods that tolerate the taint alone.

locals {
  spans_hosts   = var.efa_interfaces > 0
  is_block      = var.capacity == "block"
  has_reserved  = var.capacity_reservation_id != null
  capacity_type = { on_demand = "ON_DEMAND", reservation = "ON_DEMAND", spot = "SPOT", block = "CAPACITY_BLOCK" }[var.capacity]

  # The NVMe disks become one volume, on which images and models are kept.
  node_config = <<-EOT
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="//"

    --//
    Content-Type: application/node.eks.aws

    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      instance:
        localStorage:
          strategy: RAID0
    --//--
  EOT
}

resource "aws_placement_group" "this" {
  count = local.spans_hosts ? 1 : 0

  name     = "${var.cluster_name}-${var.name}"
  strategy = "cluster"
}

# EFA traffic passes only between members of a group that allows itself everything, in and out.
resource "aws_security_group" "efa" {
  count = local.spans_hosts ? 1 : 0

  name        = "${var.cluster_name}-${var.name}-efa"
  description = "EFA between the GPU nodes of one group"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.cluster_name}-${var.name}-efa" }
}

resource "aws_vpc_security_group_ingress_rule" "efa" {
  count = local.spans_hosts ? 1 : 0

  security_group_id            = aws_security_group.efa[0].id
  description                  = "All traffic from the same group, which EFA needs"
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  count = local.spans_hosts ? 1 : 0

  security_group_id            = aws_security_group.efa[0].id
  description                  = "All traffic to the same group, which EFA needs"
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
}

resource "aws_launch_template" "this" {
  name_prefix            = "${var.cluster_name}-${var.name}-"
  update_default_version = true
  instance_type          = local.is_block ? var.instance_type : null
  user_data              = base64encode(local.node_config)
  vpc_security_group_ids = local.spans_hosts ? null : [var.cluster_security_group_id]

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_type           = "gp3"
      volume_size           = var.disk_gib
      encrypted             = true
      kms_key_id            = var.disk_key_arn
      delete_on_termination = true
    }
  }

  monitoring {
    enabled = true
  }

  # The first card carries the node's address; the others are EFA alone and take no addresses of the subnet.
  dynamic "network_interfaces" {
    for_each = range(var.efa_interfaces)
    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = network_interfaces.value == 0 ? "efa" : "efa-only"
      delete_on_termination = true
      security_groups       = [var.cluster_security_group_id, aws_security_group.efa[0].id]
    }
  }

  dynamic "placement" {
    for_each = aws_placement_group.this
    content {
      group_name = placement.value.name
    }
  }

  dynamic "instance_market_options" {
    for_each = local.is_block ? [1] : []
    content {
      market_type = "capacity-block"
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = local.has_reserved ? [var.capacity_reservation_id] : []
    content {
      capacity_reservation_target {
        capacity_reservation_id = capacity_reservation_specification.value
      }
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = { Name = "${var.cluster_name}-${var.name}" }
  }
}

resource "aws_eks_node_group" "this" {
  cluster_name    = var.cluster_name
  node_group_name = var.name
  node_role_arn   = var.node_role_arn
  subnet_ids      = [var.subnet_id]
  instance_types  = local.is_block ? null : [var.instance_type]
  capacity_type   = local.capacity_type
  ami_type        = "AL2023_x86_64_NVIDIA"

  labels = merge({
    "axon/pool"              = var.name
    "nvidia.com/gpu.present" = "true"
  }, var.labels)

  taint {
    key    = "nvidia.com/gpu"
    value  = "true"
    effect = "NO_SCHEDULE"
  }

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  scaling_config {
    desired_size = var.min_size
    min_size     = var.min_size
    max_size     = var.max_size
  }

  update_config {
    max_unavailable = 1
  }

  node_repair_config {
    enabled = true
  }

  # The cluster autoscaler changes the size; a later apply must not take it back.
  lifecycle {
    ignore_changes = [scaling_config[0].desired_size]
  }
}

# The cluster autoscaler reads labels and taints of a group without nodes from EKS, and GPUs from the instance type. That
# its nodes would have EFA interfaces it learns from this tag.
resource "aws_autoscaling_group_tag" "efa" {
  count = local.spans_hosts ? 1 : 0

  autoscaling_group_name = aws_eks_node_group.this.resources[0].autoscaling_groups[0].name

  tag {
    key                 = "k8s.io/cluster-autoscaler/node-template/resources/vpc.amazonaws.com/efa"
    value               = tostring(var.efa_interfaces)
    propagate_at_launch = false
  }
}
