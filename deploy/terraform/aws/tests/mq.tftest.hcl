mock_provider "aws" {
  override_during = plan

  mock_resource "aws_mq_broker" {
    defaults = {
      instances = [{ console_url = "https://b-1.mq", endpoints = ["amqps://b-1.mq:5671"], ip_address = "" }]
    }
  }
  mock_resource "aws_mq_configuration" {
    defaults = { latest_revision = 1 }
  }
}

variables {
  name                      = "axon-test"
  vpc_id                    = "vpc-1"
  subnet_ids                = ["subnet-a", "subnet-b", "subnet-c"]
  client_security_group_ids = { nodes = "sg-cluster" }
  bootstrap_password        = "not-a-secret-of-anybody"
  key_arn                   = "arn:aws:kms:eu-central-1:123456789012:key/data"
}

run "three_nodes_in_three_zones_inside_the_network" {
  command = plan
  module { source = "./modules/mq" }

  assert {
    condition     = aws_mq_broker.this.deployment_mode == "CLUSTER_MULTI_AZ" && length(aws_mq_broker.this.subnet_ids) == 3
    error_message = "A quorum needs three zones."
  }
  assert {
    condition     = !aws_mq_broker.this.publicly_accessible && !aws_mq_broker.this.encryption_options[0].use_aws_owned_key
    error_message = "The broker must be private and encrypted by our key."
  }
  assert {
    condition     = output.endpoint == "amqps://b-1.mq:5671"
    error_message = "The address must be the one with TLS."
  }
  assert {
    condition     = sort([for rule in concat(values(aws_vpc_security_group_ingress_rule.amqps), values(aws_vpc_security_group_ingress_rule.management)) : tostring(rule.from_port)]) == tolist(["443", "5671"])
    error_message = "Only ports with TLS are open."
  }
}

run "one_node_for_development" {
  command = plan
  module { source = "./modules/mq" }
  variables {
    deployment_mode = "SINGLE_INSTANCE"
  }
  assert {
    condition     = aws_mq_broker.this.subnet_ids == toset(["subnet-a"])
    error_message = "A single broker is in one subnet."
  }
}

run "rabbitmq_4_on_older_nodes_and_an_active_standby_are_refused" {
  command = plan
  module { source = "./modules/mq" }
  variables {
    deployment_mode = "ACTIVE_STANDBY_MULTI_AZ"
    instance_type   = "mq.m5.large"
  }
  expect_failures = [var.instance_type, var.deployment_mode]
}
