locals {
  # Pods of a worker set go to the GPU group of the same name, one pod to a GPU node unless you say otherwise.
  workers = { for name, group in var.gpu_groups : name => {
    gpus         = group.gpus
    efa          = group.efa_interfaces
    nodeSelector = module.gpu_nodes[name].scheduling.nodeSelector
    tolerations  = module.gpu_nodes[name].scheduling.tolerations
    modelSpace   = "500Gi"
  } }

  aws_environment = [{ name = "AWS_REGION", value = var.region }]

  target_group_binding = var.load_balancer != "terraform" ? [] : [{
    apiVersion = "elbv2.k8s.aws/v1beta1"
    kind       = "TargetGroupBinding"
    metadata   = { name = "${var.release}-edge" }
    spec = {
      serviceRef     = { name = var.release, port = 80 }
      targetGroupARN = module.edge.target_group_arn
      targetType     = "ip"
    }
  }]

  by_ingress = var.load_balancer == "ingress"
}

output "helm_values" {
  description = "Values for the chart deploy/helm/axon, without any secret."
  value = {
    secrets = {
      # You make it: step 4 of docs/deploy/aws.md.
      ca = { kind = "ConfigMap", name = "${var.release}-ca", key = "ca.crt" }
      external = {
        enabled = true
        store   = { kind = "ClusterSecretStore", name = "aws-secrets-manager" }
        data    = { for name, secret in module.secrets.names : name => { key = secret } }
      }
    }
    batchFiles = { url = "s3://${module.bucket["files"].name}/batches" }
    # The files are in a bucket and the pepper in Secrets Manager, each with a copy in the other region.
    backup = { enabled = true, url = "s3://${module.bucket["backups"].name}/axon", pepper = false, extraEnv = local.aws_environment }
    # The load balancer is in these subnets, whoever makes it. Nobody else says what a client's address is.
    edge = { trustedProxies = module.network.public_subnet_cidrs }
    ingress = {
      enabled        = local.by_ingress
      host           = var.host
      scheme         = "internet-facing"
      certificateArn = var.certificate_arn
      wafAclArn      = module.edge.web_acl_arn
      annotations    = { "alb.ingress.kubernetes.io/security-groups" = module.edge.security_group_id }
    }
    # The load balancer and the edge each add to X-Forwarded-For.
    gateway      = { proxies = 2, extraEnv = local.aws_environment }
    control      = { extraEnv = local.aws_environment }
    extraObjects = local.target_group_binding
    # 80 is the port at which Pod Identity's agent on each node gives pods their credentials.
    networkPolicy = { internetPorts = [80, 443, 4317, 4318] }
    workerDefaults = {
      extraEnv = local.aws_environment
      keda     = { serverAddress = trimsuffix(module.observability.query_url, "/"), authentication = "keda-aws", awsRegion = var.region }
    }
    # Null takes the chart's own set of CPU workers away, where there are GPUs.
    workers = { for name, set in merge(local.workers, { default = null }) : name => set if name != "default" || length(local.workers) > 0 }
  }
}

output "cluster_name" {
  description = "Name of the cluster, for aws eks update-kubeconfig."
  value       = module.cluster.name
}

output "dns_name" {
  description = "Name of the load balancer, to which your record of the API's name leads; null if the cluster's controller makes it."
  value       = module.edge.dns_name
}

output "dns_zone_id" {
  description = "Hosted zone of that name, for an alias record."
  value       = module.edge.zone_id
}

output "services" {
  description = "Addresses of the services, of which the secrets' URLs are made."
  value = {
    broker         = module.broker.endpoint
    broker_console = module.broker.console_url
    cache          = "${module.cache.endpoint}:${module.cache.port}"
    database       = module.database.endpoint
  }
}

output "secret_names" {
  description = "Secrets that are made empty and wait for their values."
  value       = module.secrets.names
}

output "database_owner_secret_arn" {
  description = "Secret with the database owner's password, which RDS rotates."
  value       = module.database.owner_secret_arn
}

output "buckets" {
  description = "Buckets, and their replicas in the other region."
  value       = { for name, bucket in module.bucket : name => { name = bucket.name, replica = bucket.replica_name } }
}

output "observability" {
  description = "Where metrics, logs and alerts go."
  value = {
    remote_write_url = module.observability.remote_write_url
    grafana          = module.observability.grafana_endpoint
    search           = module.observability.search_endpoint
    alerts_topic_arn = module.observability.alerts_topic_arn
  }
}

output "service_accounts" {
  description = "Service accounts that have rights in AWS, as namespace/name."
  value       = merge(module.rights.service_accounts, module.collector.service_accounts)
}

output "actions" {
  description = "What each of them may do in AWS."
  value       = merge(module.rights.actions, module.collector.actions)
}

output "expire_days" {
  description = "Days after which the objects of each bucket go, null where they stay."
  value       = { for name, bucket in module.bucket : name => bucket.expire_days }
}

output "backup" {
  description = "The vaults of the backups, here and in the other region, and the role that restores."
  value = {
    vault_name        = module.backup.vault_name
    replica_vault_arn = module.backup.replica_vault_arn
    role_arn          = module.backup.role_arn
  }
}
