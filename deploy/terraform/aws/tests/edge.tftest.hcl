mock_provider "aws" {
  override_during = plan

  mock_resource "aws_wafv2_web_acl" {
    defaults = { arn = "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/axon/1" }
  }
}

variables {
  name                  = "axon-test"
  vpc_id                = "vpc-1"
  subnet_ids            = ["subnet-a", "subnet-b", "subnet-c"]
  certificate_arn       = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
  pod_security_group_id = "sg-cluster"
  log_bucket            = "logs"
  log_key_arn           = "arn:aws:kms:eu-central-1:123456789012:key/logs"
}

run "streams_live_pods_are_drained_and_the_firewall_lets_prompts_pass" {
  command = plan
  module { source = "./modules/edge" }

  assert {
    condition     = aws_lb.this[0].idle_timeout == 300 && aws_lb_target_group.this[0].deregistration_delay == "60"
    error_message = "Silence of 300 s is allowed, and a pod has 60 s to drain."
  }
  assert {
    condition     = aws_lb_listener.https[0].protocol == "HTTPS" && startswith(aws_lb_listener.https[0].ssl_policy, "ELBSecurityPolicy-TLS13-1-2")
    error_message = "TLS 1.2 is the least."
  }
  assert {
    condition     = aws_lb_target_group.this[0].health_check[0].path == "/edge/healthz" && aws_lb_target_group.this[0].health_check[0].port == "traffic-port"
    error_message = "The edge's pods say at /edge/healthz, on the port of requests, whether they are well."
  }
  assert {
    condition     = aws_lb.this[0].drop_invalid_header_fields && aws_lb.this[0].desync_mitigation_mode == "strictest"
    error_message = "Malformed requests must not reach the pods."
  }
  assert {
    condition     = one([for rule in aws_wafv2_web_acl.this.rule : rule.statement[0].rate_based_statement[0].limit if rule.name == "requests-of-an-address"]) == 6000
    error_message = "The limit on an address is missing."
  }
  assert {
    condition     = contains(flatten([for rule in aws_wafv2_web_acl.this.rule : [for override in rule.statement[0].managed_rule_group_statement[0].rule_action_override : override.name] if rule.name == "common"]), "SizeRestrictions_BODY")
    error_message = "A body of more than 8 KB must not be blocked: prompts are longer."
  }
  assert {
    condition     = [for field in aws_wafv2_web_acl_logging_configuration.this.redacted_fields : field.single_header[0].name] == ["authorization", "x-api-key"]
    error_message = "Keys must not be logged."
  }
  assert {
    condition     = startswith(aws_cloudwatch_log_group.firewall.name, "aws-waf-logs-")
    error_message = "The firewall writes only to groups with this prefix."
  }
}

run "the_clusters_controller_can_make_the_load_balancer" {
  command = plan
  module { source = "./modules/edge" }
  variables {
    load_balancer = "ingress"
  }
  assert {
    condition     = length(aws_lb.this) == 0 && output.target_group_arn == null
    error_message = "There must be one load balancer, not two."
  }
  assert {
    condition     = output.web_acl_arn == aws_wafv2_web_acl.this.arn
    error_message = "The controller must take the firewall."
  }
}

run "a_drain_longer_than_the_grace_is_refused" {
  command = plan
  module { source = "./modules/edge" }
  variables {
    deregistration_delay_s = 120
  }
  expect_failures = [var.deregistration_delay_s]
}
