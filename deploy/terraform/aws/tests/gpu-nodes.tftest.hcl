mock_provider "aws" {
  override_during = plan

  mock_resource "aws_security_group" {
    defaults = { id = "sg-efa" }
  }

  mock_resource "aws_eks_node_group" {
    defaults = {
      resources = [{ autoscaling_groups = [{ name = "eks-h100" }], remote_access_security_group_id = "" }]
    }
  }
}

variables {
  cluster_name              = "axon-test"
  name                      = "h100"
  vpc_id                    = "vpc-1"
  subnet_id                 = "subnet-gpu"
  cluster_security_group_id = "sg-cluster"
  node_role_arn             = "arn:aws:iam::123456789012:role/node"
  disk_key_arn              = "arn:aws:kms:eu-central-1:123456789012:key/disks"
  instance_type             = "p5.48xlarge"
  max_size                  = 2
  efa_interfaces            = 32
}

run "one_subnet_close_together_with_efa_and_for_gpu_pods_alone" {
  command = plan
  module { source = "./modules/gpu-nodes" }

  assert {
    condition     = aws_eks_node_group.this.subnet_ids == toset(["subnet-gpu"])
    error_message = "A group has one subnet."
  }
  assert {
    condition     = aws_placement_group.this[0].strategy == "cluster" && aws_launch_template.this.placement[0].group_name == "axon-test-h100"
    error_message = "Nodes must be close together."
  }
  assert {
    condition     = [for taint in aws_eks_node_group.this.taint : "${taint.key}=${taint.value}:${taint.effect}"] == ["nvidia.com/gpu=true:NO_SCHEDULE"]
    error_message = "Other pods must be kept away."
  }
  assert {
    condition     = length(aws_launch_template.this.network_interfaces) == 32
    error_message = "Each network card needs an interface."
  }
  assert {
    condition     = [for interface in aws_launch_template.this.network_interfaces : interface.interface_type] == concat(["efa"], [for index in range(31) : "efa-only"])
    error_message = "Only the first interface takes an address."
  }
  assert {
    condition     = alltrue([for index, interface in aws_launch_template.this.network_interfaces : interface.network_card_index == index && interface.device_index == (index == 0 ? 0 : 1)])
    error_message = "Cards and devices are numbered wrongly."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.efa[0].referenced_security_group_id == aws_security_group.efa[0].id && aws_vpc_security_group_egress_rule.efa[0].referenced_security_group_id == aws_security_group.efa[0].id
    error_message = "EFA needs a security group that allows itself everything, in and out."
  }
  assert {
    condition     = aws_autoscaling_group_tag.efa[0].tag[0].value == "32"
    error_message = "The cluster autoscaler must know of the interfaces."
  }
}

run "a_group_on_one_host_has_no_efa" {
  command = plan
  module { source = "./modules/gpu-nodes" }
  variables {
    instance_type  = "g6e.12xlarge"
    efa_interfaces = 0
  }
  assert {
    condition     = length(aws_placement_group.this) == 0 && length(aws_launch_template.this.network_interfaces) == 0 && aws_launch_template.this.vpc_security_group_ids == toset(["sg-cluster"])
    error_message = "Without EFA there is neither a placement group nor an interface of its own."
  }
}

run "a_capacity_block" {
  command = plan
  module { source = "./modules/gpu-nodes" }
  variables {
    capacity                = "block"
    capacity_reservation_id = "cr-1"
  }
  assert {
    condition     = aws_eks_node_group.this.capacity_type == "CAPACITY_BLOCK" && aws_launch_template.this.instance_market_options[0].market_type == "capacity-block" && aws_launch_template.this.instance_type == "p5.48xlarge"
    error_message = "A capacity block is named in the template and in the group."
  }
  assert {
    condition     = aws_launch_template.this.capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-1"
    error_message = "The nodes must come from the reservation."
  }
}

run "a_reservation_without_its_id_and_an_instance_without_gpus_are_refused" {
  command = plan
  module { source = "./modules/gpu-nodes" }
  variables {
    instance_type = "m7i.xlarge"
    capacity      = "reservation"
  }
  expect_failures = [var.capacity_reservation_id, var.instance_type]
}
