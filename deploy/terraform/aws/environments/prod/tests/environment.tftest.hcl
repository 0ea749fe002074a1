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

run "the_whole_environment_can_be_planned_and_gives_the_charts_values" {
  command = plan

  assert {
    condition     = yamldecode(output.helm_values) == yamldecode(file("tests/helm-values.yaml"))
    error_message = "The values differ from tests/helm-values.yaml:\n${output.helm_values}"
  }
  assert {
    condition     = !strcontains(output.helm_values, "not-a-secret-of-anybody")
    error_message = "A password is in the chart's values."
  }
  assert {
    condition     = output.services.broker == "amqps://b-1.mq:5671"
    error_message = "The broker is reached over TLS."
  }
  assert {
    condition     = output.buckets.models == { name = "axon-prod-123456789012-models", replica = "axon-prod-123456789012-models-replica" }
    error_message = "Models must have a replica."
  }
  assert {
    condition     = join(" ", module.platform.actions["backup"]) == "kms:Decrypt kms:GenerateDataKey s3:AbortMultipartUpload s3:ListMultipartUploadParts s3:PutObject"
    error_message = "A backup's pod adds archives; it must neither read nor delete those that are there."
  }
  assert {
    condition     = module.platform.expire_days["backups"] == 35 && module.platform.expire_days["files"] == null && module.platform.expire_days["models"] == null
    error_message = "Archives go after as many days as the database's own backups; models and files stay."
  }
}

run "the_clusters_controller_can_make_the_load_balancer" {
  command = plan
  variables {
    load_balancer = "ingress"
  }
  assert {
    condition     = yamldecode(output.helm_values).ingress.enabled && length(yamldecode(output.helm_values).extraObjects) == 0 && output.dns_name == null
    error_message = "There must be one load balancer, not two."
  }
  assert {
    condition     = yamldecode(output.helm_values).edge.trustedProxies == ["10.20.0.0/24", "10.20.1.0/24", "10.20.2.0/24"]
    error_message = "A client must not choose its address."
  }
  assert {
    condition     = !contains(keys(output.service_accounts), "load-balancer-controller")
    error_message = "The controller that makes load balancers needs its project's own policy, not ours."
  }
}
