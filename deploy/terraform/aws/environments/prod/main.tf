# The environment prod: its sizes are in sizes.auto.tfvars.json, what belongs to your account in variables that you set.

provider "aws" {
  region              = var.region
  allowed_account_ids = [var.account_id]

  default_tags {
    tags = local.tags
  }
}

provider "aws" {
  alias               = "replica"
  region              = var.replica_region
  allowed_account_ids = [var.account_id]

  default_tags {
    tags = local.tags
  }
}

locals {
  tags = {
    environment = var.name
    managed-by  = "terraform"
    project     = "axon"
  }
}

module "platform" {
  source    = "../../modules/platform"
  providers = { aws = aws, aws.replica = aws.replica }

  name                      = var.name
  account_id                = var.account_id
  region                    = var.region
  replica_region            = var.replica_region
  zones                     = var.zones
  cidr                      = var.cidr
  nat_per_zone              = var.nat_per_zone
  kubernetes_version        = var.kubernetes_version
  admin_role_arns           = var.admin_role_arns
  public_access_cidrs       = var.public_access_cidrs
  node_groups               = var.node_groups
  gpu_groups                = var.gpu_groups
  database                  = var.database
  cache                     = var.cache
  broker                    = var.broker
  search                    = var.search
  grafana_enabled           = var.grafana_enabled
  host                      = var.host
  certificate_arn           = var.certificate_arn
  load_balancer             = var.load_balancer
  requests_per_5_minutes    = var.requests_per_5_minutes
  protected                 = var.protected
  log_retention_days        = var.log_retention_days
  broker_bootstrap_password = var.broker_bootstrap_password
  cache_bootstrap_token     = var.cache_bootstrap_token
  database_restore          = var.database_restore
  database_snapshot_arn     = var.database_snapshot_arn
}
