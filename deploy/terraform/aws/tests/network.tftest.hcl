mock_provider "aws" {
  override_during = plan
}

variables {
  name        = "axon-test"
  cidr        = "10.20.0.0/16"
  region      = "eu-central-1"
  zones       = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
  gpu_groups  = { h100 = "eu-central-1b", l40s = "eu-central-1a" }
  log_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/logs"
}

run "subnets_do_not_overlap_and_each_zone_has_its_own_way_out" {
  command = plan
  module { source = "./modules/network" }

  override_resource {
    target          = aws_nat_gateway.this["eu-central-1a"]
    override_during = plan
    values          = { id = "nat-a" }
  }
  override_resource {
    target          = aws_nat_gateway.this["eu-central-1b"]
    override_during = plan
    values          = { id = "nat-b" }
  }
  override_resource {
    target          = aws_nat_gateway.this["eu-central-1c"]
    override_during = plan
    values          = { id = "nat-c" }
  }

  assert {
    condition     = [for zone in var.zones : aws_route.private[zone].nat_gateway_id] == ["nat-a", "nat-b", "nat-c"]
    error_message = "A zone's nodes must leave by their own zone's gateway."
  }
  assert {
    condition     = length(aws_default_security_group.this.ingress) == 0 && length(aws_default_security_group.this.egress) == 0
    error_message = "The default security group must allow nothing."
  }
  assert {
    condition     = [for subnet in aws_subnet.public : subnet.cidr_block] == ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"]
    error_message = "Public subnets are the first /24s."
  }
  assert {
    condition     = output.public_subnet_cidrs == ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"]
    error_message = "The edge must know the load balancer's addresses."
  }
  assert {
    condition     = [for subnet in aws_subnet.data : subnet.cidr_block] == ["10.20.16.0/24", "10.20.17.0/24", "10.20.18.0/24"]
    error_message = "Data subnets are /24s from 16 on."
  }
  assert {
    condition     = [for subnet in aws_subnet.private : subnet.cidr_block] == ["10.20.32.0/19", "10.20.64.0/19", "10.20.96.0/19"]
    error_message = "Private subnets are /19s."
  }
  assert {
    condition     = { for group, subnet in aws_subnet.gpu : group => [subnet.availability_zone, subnet.cidr_block] } == { h100 = ["eu-central-1b", "10.20.128.0/20"], l40s = ["eu-central-1a", "10.20.144.0/20"] }
    error_message = "Each GPU group has a /20 of its own in its own zone."
  }
}

run "one_gateway_serves_a_cheap_environment" {
  command = plan
  module { source = "./modules/network" }
  variables {
    nat_per_zone = false
  }
  assert {
    condition     = keys(aws_nat_gateway.this) == ["eu-central-1a"]
    error_message = "There must be one NAT gateway."
  }
}

run "two_zones_are_refused" {
  command = plan
  module { source = "./modules/network" }
  variables {
    zones = ["eu-central-1a", "eu-central-1b"]
  }
  expect_failures = [var.zones]
}

run "a_group_in_a_zone_elsewhere_is_refused" {
  command = plan
  module { source = "./modules/network" }
  variables {
    gpu_groups = { far = "us-east-1a" }
  }
  expect_failures = [aws_subnet.gpu]
}
