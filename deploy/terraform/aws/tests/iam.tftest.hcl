mock_provider "aws" {
  override_during = plan
}

variables {
  cluster_name = "axon-test"
  cluster_arn  = "arn:aws:eks:eu-central-1:123456789012:cluster/axon-test"
  identities = {
    worker = {
      namespace       = "axon"
      service_account = "axon-worker"
      statements      = [{ actions = ["s3:GetObject"], resources = ["arn:aws:s3:::models/*"] }]
    }
  }
}

run "a_role_for_pods_of_this_cluster_alone" {
  command = plan
  module { source = "./modules/iam" }

  assert {
    condition     = jsondecode(aws_iam_role.this["worker"].assume_role_policy).Statement[0].Principal.Service == "pods.eks.amazonaws.com" && jsondecode(aws_iam_role.this["worker"].assume_role_policy).Statement[0].Condition.ArnEquals["aws:SourceArn"] == var.cluster_arn
    error_message = "Only pods of this cluster may take the role."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this["worker"].policy).Statement == [{ Effect = "Allow", Action = ["s3:GetObject"], Resource = ["arn:aws:s3:::models/*"] }]
    error_message = "The rights must be those that were asked for."
  }
  assert {
    condition     = aws_eks_pod_identity_association.this["worker"].service_account == "axon-worker" && output.service_accounts["worker"] == "axon/axon-worker"
    error_message = "The role must be given to the service account."
  }
  assert {
    condition     = join(" ", output.actions["worker"]) == "s3:GetObject"
    error_message = "What it may do must be said."
  }
}

run "a_whole_service_is_refused" {
  command = plan
  module { source = "./modules/iam" }
  variables {
    identities = {
      worker = { namespace = "axon", service_account = "axon-worker", statements = [{ actions = ["s3:*"], resources = ["arn:aws:s3:::models/*"] }] }
    }
  }
  expect_failures = [var.identities]
}

run "writing_everywhere_is_refused" {
  command = plan
  module { source = "./modules/iam" }
  variables {
    identities = {
      worker = { namespace = "axon", service_account = "axon-worker", statements = [{ actions = ["s3:PutObject"], resources = ["*"] }] }
    }
  }
  expect_failures = [var.identities]
}
