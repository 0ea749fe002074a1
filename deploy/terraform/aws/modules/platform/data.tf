# Where things are kept: the three services, the buckets, the secrets' places and the backups.

module "database" {
  source = "../rds"

  name                      = var.name
  vpc_id                    = module.network.vpc_id
  subnet_ids                = module.network.data_subnet_ids
  client_security_group_ids = { nodes = module.cluster.security_group_id }
  engine_version            = var.database.engine_version
  instance_class            = var.database.instance_class
  allocated_storage_gib     = var.database.allocated_storage_gib
  iops                      = var.database.iops
  backup_retention_days     = var.database.backup_retention_days
  deletion_protection       = var.protected
  key_arn                   = module.kms.arns["data"]
  restore_to_point_in_time  = var.database_restore
  snapshot_arn              = var.database_snapshot_arn
}

module "cache" {
  source = "../elasticache"

  name                      = var.name
  vpc_id                    = module.network.vpc_id
  subnet_ids                = module.network.data_subnet_ids
  client_security_group_ids = { nodes = module.cluster.security_group_id }
  engine_version            = var.cache.engine_version
  node_type                 = var.cache.node_type
  replicas                  = var.cache.replicas
  bootstrap_token           = var.cache_bootstrap_token
  key_arn                   = module.kms.arns["data"]
  log_key_arn               = module.kms.arns["logs"]
  log_retention_days        = var.log_retention_days
}

module "broker" {
  source = "../mq"

  name                      = var.name
  vpc_id                    = module.network.vpc_id
  subnet_ids                = module.network.data_subnet_ids
  client_security_group_ids = { nodes = module.cluster.security_group_id }
  engine_version            = var.broker.engine_version
  instance_type             = var.broker.instance_type
  deployment_mode           = var.broker.deployment_mode
  bootstrap_password        = var.broker_bootstrap_password
  key_arn                   = module.kms.arns["data"]
}

locals {
  # As long as the database's own backups can be restored, so long stay the nightly archives.
  keep_days = max(7, var.database.backup_retention_days)
}

module "bucket" {
  source    = "../models-bucket"
  for_each  = toset(["models", "files", "backups"])
  providers = { aws = aws, aws.replica = aws.replica }

  name            = "${var.name}-${var.account_id}-${each.key}"
  key_arn         = module.kms.arns["storage"]
  replica_key_arn = module.replica_kms.arns["storage"]
  log_bucket      = module.log_bucket.name
  expire_days     = each.key == "backups" ? local.keep_days : null
}

module "secrets" {
  source = "../secrets"

  name            = "axon/${var.name}"
  key_arn         = module.kms.arns["data"]
  replica_region  = var.replica_region
  replica_key_arn = module.replica_kms.arns["data"]
  secrets = {
    queue  = "URL of RabbitMQ: amqps://USER:PASSWORD@HOST:5671"
    live   = "URL of Valkey: rediss://:PASSWORD@HOST:6379"
    store  = "URL of PostgreSQL: postgresql://USER:PASSWORD@HOST:5432/axon?sslmode=verify-full"
    pepper = "Secret that API keys are hashed with; lost, every key must be made anew"
  }
}

module "backup" {
  source    = "../backup"
  providers = { aws = aws, aws.replica = aws.replica }

  name            = var.name
  key_arn         = module.kms.arns["backup"]
  replica_key_arn = module.replica_kms.arns["backup"]
  resource_arns   = concat([module.database.arn], [for bucket in module.bucket : bucket.arn])
  every_hours     = var.database.backup_every_hours
  keep_days       = local.keep_days
  lock            = var.protected
}
