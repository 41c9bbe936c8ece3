# Creates the stack that `make stack ENV=dev` has written to dist/stack/dev: uploads its files by the AWS CLI, then
# deploys the template. Keys contain the hash of their file, so none is overwritten.

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

locals {
  template_key = "${local.stack.name}/template/${filesha256(local.stack.template)}.json"
  files        = merge(local.stack.files, { (local.template_key) = local.stack.template })
}

# Not as objects of Terraform, which would delete those of the release before while its runs still use them.
resource "terraform_data" "upload" {
  for_each         = local.files
  triggers_replace = each.key

  provisioner "local-exec" {
    command = "aws s3 cp --only-show-errors --region ${local.stack.region} '${each.value}' 's3://${local.stack.bucket}/${each.key}'"
  }
}

resource "aws_cloudformation_stack" "compactor" {
  name         = local.stack.name
  template_url = "https://${local.stack.bucket}.s3.${local.stack.region}.amazonaws.com/${local.template_key}"
  parameters   = local.stack.parameters
  tags         = local.stack.tags
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [terraform_data.upload]
}

output "outputs" {
  description = "The outputs of the stack, such as its dashboard and its queue."
  value       = aws_cloudformation_stack.compactor.outputs
}
