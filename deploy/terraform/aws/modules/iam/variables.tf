variable "cluster_name" {
  description = "Cluster whose pods get the rights."
  type        = string
}

variable "cluster_arn" {
  description = "ARN of the cluster: a role is given to its pods alone."
  type        = string
}

variable "identities" {
  description = "Rights of each service account. A statement allows actions on resources, where its conditions hold (operator to key to values)."
  type = map(object({
    namespace       = string
    service_account = string
    statements = list(object({
      actions    = list(string)
      resources  = list(string)
      conditions = optional(map(map(list(string))), {})
    }))
  }))

  validation {
    condition = alltrue(flatten([
      for identity in values(var.identities) : [for statement in identity.statements : [
        for action in statement.actions : can(regex("^[a-z0-9-]+:[A-Z][A-Za-z]*\\*?$", action))
      ]]
    ]))
    error_message = "Name the actions, as in s3:GetObject; a whole service (s3:*) or everything (*) is more than a pod needs."
  }

  validation {
    condition = alltrue(flatten([
      for identity in values(var.identities) : [for statement in identity.statements : [
        for action in statement.actions : !contains(statement.resources, "*") || length(statement.conditions) > 0 || can(regex("^[a-z0-9-]+:(Describe|List|Get)", action))
      ]]
    ]))
    error_message = "On resource * only actions that read (Describe, List, Get) are allowed without a condition."
  }
}
