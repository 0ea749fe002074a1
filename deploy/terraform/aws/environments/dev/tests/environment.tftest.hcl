mock_provider "aws" {
  override_during = plan

  mock_resource "aws_rds_cluster" {
    defaults = {
      master_user_secret = [{ secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!cluster", kms_key_id = "", secret_status = "active" }]
    }
  }
  mock_resource "aws_mq_broker" {
    defaults = {
      instances = [{ console_url = "https://b-1.mq", endpoints = ["amqps://b-1.mq:5671"], ip_address = "" }]
    }
  }
  mock_resource "aws_mq_configuration" {
    defaults = { latest_revision = 1 }
  }
  mock_resource "aws_eks_node_group" {
    defaults = {
      resources = [{ autoscaling_groups = [{ name = "eks-gpu" }], remote_access_security_group_id = "" }]
    }
  }
  mock_resource "aws_eks_cluster" {
    defaults = {
      vpc_config = { cluster_security_group_id = "sg-cluster", vpc_id = "vpc-1" }
    }
  }
  mock_resource "aws_security_group" {
    defaults = { id = "sg-1" }
  }
  mock_resource "aws_wafv2_web_acl" {
    defaults = { arn = "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/axon/1" }
  }
  mock_resource "aws_lb_target_group" {
    defaults = { arn = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/axon/1" }
  }
  mock_resource "aws_prometheus_workspace" {
    defaults = { prometheus_endpoint = "https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1/" }
  }
}

mock_provider "aws" {
  alias           = "replica"
  override_during = plan
}

variables {
  account_id                = "123456789012"
  admin_role_arns           = ["arn:aws:iam::123456789012:role/platform"]
  host                      = "api.example.com"
  certificate_arn           = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
  broker_bootstrap_password = "not-a-secret-of-anybody"
  cache_bootstrap_token     = "not-a-secret-of-anybody"
}

run "the_whole_environment_can_be_planned" {
  command = plan

  assert {
    condition     = sort(keys(output.service_accounts)) == tolist(["backup", "cluster-autoscaler", "collector", "control", "external-secrets", "gateway", "keda", "load-balancer-controller", "worker"])
    error_message = "Each part has its own rights."
  }
  assert {
    condition     = yamldecode(output.helm_values).workers.l4.nodeSelector["axon/pool"] == "l4"
    error_message = "Workers must find the GPU nodes."
  }
  assert {
    condition     = output.observability.grafana == null && output.observability.search == null
    error_message = "A development environment has neither Grafana nor OpenSearch."
  }
}

run "the_other_region_must_be_another" {
  command = plan
  variables {
    replica_region = "eu-central-1"
  }
  expect_failures = [var.replica_region]
}
