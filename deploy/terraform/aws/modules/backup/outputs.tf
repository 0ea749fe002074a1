output "vault_name" {
  description = "Vault of the backups, of the same name in both regions."
  value       = aws_backup_vault.this.name
}

output "vault_arn" {
  description = "ARN of the vault here."
  value       = aws_backup_vault.this.arn
}

output "replica_vault_arn" {
  description = "ARN of the vault in the other region."
  value       = aws_backup_vault.replica.arn
}

output "role_arn" {
  description = "Role that AWS Backup makes and restores backups with."
  value       = aws_iam_role.this.arn
}
