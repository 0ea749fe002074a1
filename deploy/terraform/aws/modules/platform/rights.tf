# What each pod may do in AWS, and nothing more.

locals {
  secret_arns = values(module.secrets.arns)

  reads_models = [
    { actions = ["s3:GetObject"], resources = ["${module.bucket["models"].arn}/*"], conditions = {} },
    { actions = ["s3:ListBucket"], resources = [module.bucket["models"].arn], conditions = {} },
    { actions = ["kms:Decrypt"], resources = [module.kms.arns["storage"]], conditions = {} },
  ]

  keeps_files = [
    {
      actions    = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
      resources  = ["${module.bucket["files"].arn}/*"]
      conditions = {}
    },
    { actions = ["s3:ListBucket", "s3:ListBucketMultipartUploads"], resources = [module.bucket["files"].arn], conditions = {} },
    { actions = ["kms:Decrypt", "kms:GenerateDataKey"], resources = [module.kms.arns["storage"]], conditions = {} },
  ]

  # It adds archives, and can neither read nor delete those that are there. S3 decrypts the key of the parts for it.
  adds_backups = [
    {
      actions    = ["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
      resources  = ["${module.bucket["backups"].arn}/*"]
      conditions = {}
    },
    { actions = ["kms:Decrypt", "kms:GenerateDataKey"], resources = [module.kms.arns["storage"]], conditions = {} },
  ]

  binds_targets = var.load_balancer != "terraform" ? {} : {
    load-balancer-controller = {
      namespace       = "kube-system"
      service_account = "aws-load-balancer-controller"
      statements = [
        {
          actions    = ["elasticloadbalancing:RegisterTargets", "elasticloadbalancing:DeregisterTargets"]
          resources  = [module.edge.target_group_arn]
          conditions = {}
        },
        {
          actions    = ["elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeTargetHealth", "elasticloadbalancing:DescribeTags", "ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:DescribeAvailabilityZones", "ec2:DescribeSecurityGroups"]
          resources  = ["*"]
          conditions = {}
        },
      ]
    }
  }
}

module "rights" {
  source = "../iam"

  cluster_name = module.cluster.name
  cluster_arn  = module.cluster.arn
  identities = merge(local.binds_targets, {
    gateway = {
      namespace       = var.namespace
      service_account = "${var.release}-gateway"
      statements      = concat(local.reads_models, local.keeps_files)
    }
    control = {
      namespace       = var.namespace
      service_account = "${var.release}-control"
      statements      = local.reads_models
    }
    worker = {
      namespace       = var.namespace
      service_account = "${var.release}-worker"
      statements      = local.reads_models
    }
    backup = {
      namespace       = var.namespace
      service_account = "${var.release}-backup"
      statements      = local.adds_backups
    }
    external-secrets = {
      namespace       = "external-secrets"
      service_account = "external-secrets"
      statements = [
        { actions = ["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"], resources = local.secret_arns, conditions = {} },
        { actions = ["kms:Decrypt"], resources = [module.kms.arns["data"]], conditions = {} },
      ]
    }
    keda = {
      namespace       = "keda"
      service_account = "keda-operator"
      statements      = [{ actions = ["aps:QueryMetrics"], resources = [module.observability.prometheus_arn], conditions = {} }]
    }
    cluster-autoscaler = {
      namespace       = "kube-system"
      service_account = "cluster-autoscaler"
      statements = [
        {
          actions    = ["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLaunchConfigurations", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeTags", "ec2:DescribeImages", "ec2:DescribeInstanceTypes", "ec2:DescribeLaunchTemplateVersions", "ec2:GetInstanceTypesFromInstanceRequirements"]
          resources  = ["*"]
          conditions = {}
        },
        { actions = ["eks:DescribeNodegroup"], resources = ["arn:aws:eks:${var.region}:${var.account_id}:nodegroup/${var.name}/*"], conditions = {} },
        {
          actions    = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
          resources  = ["*"]
          conditions = { StringEquals = { "aws:ResourceTag/k8s.io/cluster-autoscaler/${var.name}" = ["owned"] } }
        },
      ]
    }
  })
}

# The collector's role is apart: the search domain's policy names it, so that it must be there first.
module "collector" {
  source = "../iam"

  cluster_name = module.cluster.name
  cluster_arn  = module.cluster.arn
  identities = {
    collector = {
      namespace       = var.namespace
      service_account = "${var.release}-collector"
      statements = concat(
        [{
          actions    = ["aps:RemoteWrite"]
          resources  = ["arn:aws:aps:${var.region}:${var.account_id}:workspace/*"]
          conditions = { StringEquals = { "aws:ResourceTag/environment" = [var.name] } }
        }],
        var.search == null ? [] : [{
          actions    = ["es:ESHttpPost", "es:ESHttpPut", "es:ESHttpGet"]
          resources  = ["arn:aws:es:${var.region}:${var.account_id}:domain/${var.name}/*"]
          conditions = {}
        }],
      )
    }
  }
}
