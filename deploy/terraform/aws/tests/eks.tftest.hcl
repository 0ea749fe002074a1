mock_provider "aws" {
  override_during = plan
}

variables {
  name            = "axon-test"
  subnet_ids      = ["subnet-a", "subnet-b", "subnet-c"]
  secrets_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/cluster"
  disk_key_arn    = "arn:aws:kms:eu-central-1:123456789012:key/disks"
  log_key_arn     = "arn:aws:kms:eu-central-1:123456789012:key/logs"
  admin_role_arns = ["arn:aws:iam::123456789012:role/platform"]
  node_groups     = { general = { instance_types = ["m7i.xlarge"], min_size = 2, max_size = 4, taints = { dedicated = "axon" } } }
}

run "the_cluster_is_private_and_its_nodes_give_no_rights_to_pods" {
  command = plan
  module { source = "./modules/eks" }

  assert {
    condition     = aws_eks_cluster.this.vpc_config[0].endpoint_private_access && !aws_eks_cluster.this.vpc_config[0].endpoint_public_access
    error_message = "Without addresses the API must be private."
  }
  assert {
    condition     = one(aws_eks_cluster.this.encryption_config).resources == toset(["secrets"])
    error_message = "Secrets must be encrypted by our key."
  }
  assert {
    condition     = length(aws_eks_cluster.this.enabled_cluster_log_types) == 5
    error_message = "All five logs must be kept."
  }
  assert {
    condition     = aws_eks_cluster.this.access_config[0].authentication_mode == "API" && !aws_eks_cluster.this.access_config[0].bootstrap_cluster_creator_admin_permissions
    error_message = "Rights must come from access entries alone."
  }
  assert {
    condition     = alltrue([for template in aws_launch_template.this : template.metadata_options[0].http_tokens == "required" && template.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "Pods must not reach the node's metadata."
  }
  assert {
    condition     = alltrue([for template in aws_launch_template.this : tobool(template.block_device_mappings[0].ebs[0].encrypted)])
    error_message = "Disks must be encrypted."
  }
  assert {
    condition     = keys(aws_iam_role_policy_attachment.node) == ["AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodePolicy"]
    error_message = "Nodes need two policies and no more."
  }
  assert {
    condition     = one(aws_eks_node_group.this["general"].taint).key == "dedicated"
    error_message = "The taint is missing."
  }
  assert {
    condition     = sort(keys(aws_eks_addon.before_nodes)) == tolist(["eks-pod-identity-agent", "kube-proxy", "vpc-cni"])
    error_message = "A node is ready only with these."
  }
  assert {
    condition     = one(aws_eks_addon.before_nodes["vpc-cni"].pod_identity_association).service_account == "aws-node"
    error_message = "The network add-on must have its rights by Pod Identity."
  }
}

run "an_open_api_and_an_old_kubernetes_are_refused" {
  command = plan
  module { source = "./modules/eks" }
  variables {
    kubernetes_version  = "1.29"
    public_access_cidrs = ["0.0.0.0/0"]
  }
  expect_failures = [var.public_access_cidrs, var.kubernetes_version]
}
