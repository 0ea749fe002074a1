# Everything of one environment, put together. The sizes are the environment's.

module "kms" {
  source = "../kms"

  name       = var.name
  account_id = var.account_id
  region     = var.region
  purposes = {
    cluster = ["eks"]
    disks   = ["ec2"]
    data    = ["elasticache", "mq", "rds", "secretsmanager"]
    storage = ["s3"]
    logs    = ["aps", "es", "logs", "sns"]
    backup  = ["backup"]
  }
}

module "replica_kms" {
  source    = "../kms"
  providers = { aws = aws.replica }

  name       = var.name
  account_id = var.account_id
  region     = var.replica_region
  purposes = {
    data    = ["rds", "secretsmanager"]
    storage = ["s3"]
    backup  = ["backup", "rds"]
  }
}

module "network" {
  source = "../network"

  name               = var.name
  cidr               = var.cidr
  region             = var.region
  zones              = var.zones
  gpu_groups         = { for name, group in var.gpu_groups : name => group.zone }
  nat_per_zone       = var.nat_per_zone
  log_key_arn        = module.kms.arns["logs"]
  log_retention_days = var.log_retention_days
}

module "cluster" {
  source = "../eks"

  name                = var.name
  kubernetes_version  = var.kubernetes_version
  subnet_ids          = module.network.private_subnet_ids
  node_groups         = var.node_groups
  admin_role_arns     = var.admin_role_arns
  public_access_cidrs = var.public_access_cidrs
  secrets_key_arn     = module.kms.arns["cluster"]
  disk_key_arn        = module.kms.arns["disks"]
  log_key_arn         = module.kms.arns["logs"]
  log_retention_days  = var.log_retention_days
}

module "gpu_nodes" {
  source   = "../gpu-nodes"
  for_each = var.gpu_groups

  name                      = each.key
  cluster_name              = module.cluster.name
  cluster_security_group_id = module.cluster.security_group_id
  node_role_arn             = module.cluster.node_role_arn
  vpc_id                    = module.network.vpc_id
  subnet_id                 = module.network.gpu_subnet_ids[each.key]
  instance_type             = each.value.instance_type
  min_size                  = each.value.min_size
  max_size                  = each.value.max_size
  disk_gib                  = each.value.disk_gib
  disk_key_arn              = module.kms.arns["disks"]
  efa_interfaces            = each.value.efa_interfaces
  capacity                  = each.value.capacity
  capacity_reservation_id   = each.value.capacity_reservation_id
}

module "log_bucket" {
  source = "../log-bucket"

  name           = "${var.name}-${var.account_id}-logs"
  account_id     = var.account_id
  retention_days = var.log_retention_days
}

module "edge" {
  source = "../edge"

  name                   = var.name
  vpc_id                 = module.network.vpc_id
  subnet_ids             = module.network.public_subnet_ids
  certificate_arn        = var.certificate_arn
  pod_security_group_id  = module.cluster.security_group_id
  load_balancer          = var.load_balancer
  requests_per_5_minutes = var.requests_per_5_minutes
  deletion_protection    = var.protected
  log_bucket             = module.log_bucket.name
  log_key_arn            = module.kms.arns["logs"]
  log_retention_days     = var.log_retention_days
}

module "observability" {
  source = "../observability"

  name                      = var.name
  account_id                = var.account_id
  region                    = var.region
  vpc_id                    = module.network.vpc_id
  subnet_ids                = module.network.data_subnet_ids
  client_security_group_ids = { nodes = module.cluster.security_group_id }
  rules                     = { axon = file("${path.module}/../../../../observability/prometheus/rules.yaml") }
  grafana_enabled           = var.grafana_enabled
  search                    = var.search
  search_writer_role_arns   = ["arn:aws:iam::${var.account_id}:role/${var.name}-collector"]
  key_arn                   = module.kms.arns["logs"]
  log_retention_days        = var.log_retention_days

  # A domain's policy may name only roles that are there.
  depends_on = [module.collector]
}
