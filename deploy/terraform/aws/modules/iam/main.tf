# A role for each service account, given by EKS Pod Identity: no key in a pod, no OIDC provider, and the session is tagged with
# cluster, namespace and service account.

resource "aws_iam_role" "this" {
  for_each = var.identities

  name = "${var.cluster_name}-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "pods.eks.amazonaws.com" }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = { ArnEquals = { "aws:SourceArn" = var.cluster_arn } }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  for_each = var.identities

  name = "rights"
  role = aws_iam_role.this[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for statement in each.value.statements : merge(
      { Effect = "Allow", Action = statement.actions, Resource = statement.resources },
      length(statement.conditions) > 0 ? { Condition = statement.conditions } : {},
    )]
  })
}

resource "aws_eks_pod_identity_association" "this" {
  for_each = var.identities

  cluster_name    = var.cluster_name
  namespace       = each.value.namespace
  service_account = each.value.service_account
  role_arn        = aws_iam_role.this[each.key].arn
}
