mock_provider "aws" {
  override_during = plan
}

variables {
  name                      = "axon-test"
  vpc_id                    = "vpc-1"
  subnet_ids                = ["subnet-a", "subnet-b", "subnet-c"]
  client_security_group_ids = { nodes = "sg-cluster" }
  node_type                 = "cache.r7g.large"
  bootstrap_token           = "not-a-secret-of-anybody"
  key_arn                   = "arn:aws:kms:eu-central-1:123456789012:key/data"
  log_key_arn               = "arn:aws:kms:eu-central-1:123456789012:key/logs"
}

run "replicas_in_other_zones_and_tls_alone" {
  command = plan
  module { source = "./modules/elasticache" }

  assert {
    condition     = aws_elasticache_replication_group.this.engine == "valkey" && aws_elasticache_replication_group.this.num_cache_clusters == 3
    error_message = "It must be Valkey with two replicas."
  }
  assert {
    condition     = aws_elasticache_replication_group.this.multi_az_enabled && aws_elasticache_replication_group.this.automatic_failover_enabled
    error_message = "A lost zone must be survived."
  }
  assert {
    condition     = tobool(aws_elasticache_replication_group.this.at_rest_encryption_enabled) && aws_elasticache_replication_group.this.transit_encryption_mode == "required"
    error_message = "It must be encrypted, at rest and on the way."
  }
  assert {
    condition     = one(aws_elasticache_parameter_group.this.parameter).value == "noeviction" && aws_elasticache_parameter_group.this.family == "valkey8"
    error_message = "Leases and token logs must not be evicted."
  }
}

run "no_replica_and_a_short_token_are_refused" {
  command = plan
  module { source = "./modules/elasticache" }
  variables {
    bootstrap_token = "short"
    replicas        = 0
  }
  expect_failures = [var.replicas, var.bootstrap_token]
}
