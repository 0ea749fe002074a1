mock_provider "aws" {
  override_during = plan

  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:123456789012:axon-test-alerts" }
  }
}

variables {
  name                      = "axon-test"
  account_id                = "123456789012"
  region                    = "eu-central-1"
  vpc_id                    = "vpc-1"
  subnet_ids                = ["subnet-a", "subnet-b", "subnet-c"]
  client_security_group_ids = { nodes = "sg-cluster" }
  key_arn                   = "arn:aws:kms:eu-central-1:123456789012:key/logs"
  rules                     = { axon = "groups: []" }
  search                    = { instance_type = "r7g.large.search", instance_count = 3, disk_gib = 100, master_type = "m7g.medium.search" }
}

run "metrics_have_our_rules_and_logs_are_searched_by_roles_alone" {
  command = plan
  module { source = "./modules/observability" }

  assert {
    condition     = aws_prometheus_rule_group_namespace.this["axon"].data == "groups: []" && aws_prometheus_workspace.this.kms_key_arn == var.key_arn
    error_message = "Rules must come from the repository."
  }
  assert {
    condition     = yamldecode(yamldecode(aws_prometheus_alert_manager_definition.this.definition).alertmanager_config).receivers[0].sns_configs[0].topic_arn == aws_sns_topic.alerts.arn
    error_message = "An alert must reach the topic."
  }
  assert {
    condition     = aws_opensearch_domain.this["this"].cluster_config[0].zone_awareness_config[0].availability_zone_count == 3 && aws_opensearch_domain.this["this"].cluster_config[0].dedicated_master_count == 3
    error_message = "The domain must be in three zones."
  }
  assert {
    condition     = !aws_opensearch_domain.this["this"].advanced_security_options[0].internal_user_database_enabled && aws_opensearch_domain.this["this"].domain_endpoint_options[0].enforce_https
    error_message = "There must be no passwords and no plain HTTP."
  }
  assert {
    condition     = length(aws_cloudwatch_log_group.search) == 4
    error_message = "Its own logs must be kept."
  }
}

run "a_small_environment_has_neither_search_nor_grafana" {
  command = plan
  module { source = "./modules/observability" }
  variables {
    search          = null
    grafana_enabled = false
  }
  assert {
    condition     = length(aws_opensearch_domain.this) == 0 && output.search_endpoint == null && output.grafana_endpoint == null
    error_message = "What is not wanted must not be made."
  }
}

run "four_search_nodes_are_refused" {
  command = plan
  module { source = "./modules/observability" }
  variables {
    search = { instance_type = "r7g.large.search", instance_count = 4, disk_gib = 100 }
  }
  expect_failures = [var.search]
}
