terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "table_names" {
  type = object({
    items     = optional(string, "items")
    mail      = optional(string, "mail")
    mutex     = optional(string, "mutex")
    once      = optional(string, "once")
    ticket    = optional(string, "ticket")
    semaphore = optional(string, "semaphore")
  })
  default = {}
}

variable "deletion_protection" {
  type    = bool
  default = true
}

resource "aws_dynamodb_table" "items" {
  name                        = var.table_names.items
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "pk"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_dynamodb_table" "mail" {
  name                        = var.table_names.mail
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "mailbox"
  range_key                   = "slot"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "mailbox"
    type = "S"
  }

  attribute {
    name = "slot"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_dynamodb_table" "mutex" {
  name                        = var.table_names.mutex
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "name"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "name"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_dynamodb_table" "once" {
  name                        = var.table_names.once
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "id"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "id"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_dynamodb_table" "ticket" {
  name                        = var.table_names.ticket
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "queue"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "queue"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

resource "aws_dynamodb_table" "semaphore" {
  name                        = var.table_names.semaphore
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }
}

output "table_arns" {
  value = {
    items     = aws_dynamodb_table.items.arn
    mail      = aws_dynamodb_table.mail.arn
    mutex     = aws_dynamodb_table.mutex.arn
    once      = aws_dynamodb_table.once.arn
    ticket    = aws_dynamodb_table.ticket.arn
    semaphore = aws_dynamodb_table.semaphore.arn
  }
}
