output "name" {
  description = "Name of the bucket, once its policy lets the services write."
  value       = aws_s3_bucket_policy.this.bucket
}
