# Creates the stack that `make stack ENV=dev` has written to dist/stack/dev: uploads its files, then the template.
# Keys contain the hash of their file, so objects of earlier deployments stay for runs that still use them.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "stack" {
  description = "The path of stack.json."
  type        = string
}

locals {
  stack = jsondecode(file(var.stack))
}

resource "aws_s3_object" "file" {
  for_each = local.stack.files
  bucket   = local.stack.bucket
  key      = each.key
  source   = each.value

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_s3_object" "template" {
  bucket = local.stack.bucket
  key    = "${local.stack.name}/template/${filesha256(local.stack.template)}.json"
  source = local.stack.template
}

resource "aws_cloudformation_stack" "compactor" {
  name         = local.stack.name
  template_url = "https://${local.stack.bucket}.s3.${local.stack.region}.amazonaws.com/${aws_s3_object.template.key}"
  parameters   = local.stack.parameters
  tags         = local.stack.tags
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [aws_s3_object.file]
}

output "outputs" {
  description = "The outputs of the stack, such as its dashboard and its queue."
  value       = aws_cloudformation_stack.compactor.outputs
}
