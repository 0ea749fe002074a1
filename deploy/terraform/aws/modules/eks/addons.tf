# A node is ready only when it has a network and can give pods their identity: those add-ons come before the nodes.

locals {
  before_nodes = toset(["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])

  # Add-ons that call AWS, the service account that does it, and the policy it needs.
  addon_identities = {
    vpc-cni            = { service_account = "aws-node", policy = "AmazonEKS_CNI_Policy" }
    aws-ebs-csi-driver = { service_account = "ebs-csi-controller-sa", policy = "service-role/AmazonEBSCSIDriverPolicy" }
  }
  identities = { for addon, identity in local.addon_identities : addon => identity if contains(keys(var.addons), addon) }
}

resource "aws_iam_role" "addon" {
  for_each = local.identities

  name = "${var.name}-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
    }]
  })
}

resource "aws_iam_role_policy_attachment" "addon" {
  for_each = local.identities

  role       = aws_iam_role.addon[each.key].name
  policy_arn = "arn:aws:iam::aws:policy/${each.value.policy}"
}

# Disks of pods are encrypted by our key, for which the driver needs its use.
resource "aws_iam_role_policy" "disk_key" {
  for_each = toset([for addon in keys(local.identities) : addon if addon == "aws-ebs-csi-driver"])

  name = "disk-key"
  role = aws_iam_role.addon[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext", "kms:DescribeKey", "kms:CreateGrant"]
      Resource = var.disk_key_arn
    }]
  })
}

resource "aws_eks_addon" "before_nodes" {
  for_each = { for addon, version in var.addons : addon => version if contains(local.before_nodes, addon) }

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = each.value
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"

  dynamic "pod_identity_association" {
    for_each = { for addon, identity in local.identities : addon => identity if addon == each.key }
    content {
      role_arn        = aws_iam_role.addon[pod_identity_association.key].arn
      service_account = pod_identity_association.value.service_account
    }
  }
}

resource "aws_eks_addon" "after_nodes" {
  for_each = { for addon, version in var.addons : addon => version if !contains(local.before_nodes, addon) }

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = each.value
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"

  dynamic "pod_identity_association" {
    for_each = { for addon, identity in local.identities : addon => identity if addon == each.key }
    content {
      role_arn        = aws_iam_role.addon[pod_identity_association.key].arn
      service_account = pod_identity_association.value.service_account
    }
  }

  depends_on = [aws_eks_node_group.this]
}
