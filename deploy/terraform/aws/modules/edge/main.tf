# The load balancer: TLS ends here, streams stay open, and a pod that stops is given time for its own.

locals {
  makes_balancer = var.load_balancer == "terraform"
  pod_ports      = { requests = var.target_port }
}

resource "aws_security_group" "this" {
  name        = "${var.name}-alb"
  description = "Load balancer"
  vpc_id      = var.vpc_id

  tags = { Name = "${var.name}-alb" }
}

resource "aws_vpc_security_group_ingress_rule" "https" {
  for_each = var.allowed_cidrs

  security_group_id = aws_security_group.this.id
  description       = "HTTPS"
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "pods" {
  for_each = local.pod_ports

  security_group_id            = aws_security_group.this.id
  description                  = "To the edge's pods: ${each.key}"
  referenced_security_group_id = var.pod_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

resource "aws_vpc_security_group_ingress_rule" "pods" {
  for_each = local.pod_ports

  security_group_id            = var.pod_security_group_id
  description                  = "From the load balancer: ${each.key}"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

resource "aws_lb" "this" {
  count = local.makes_balancer ? 1 : 0

  name                             = var.name
  load_balancer_type               = "application"
  internal                         = false
  subnets                          = var.subnet_ids
  security_groups                  = [aws_security_group.this.id]
  idle_timeout                     = var.idle_timeout_s
  enable_http2                     = true
  drop_invalid_header_fields       = true
  desync_mitigation_mode           = "strictest"
  enable_deletion_protection       = var.deletion_protection
  enable_cross_zone_load_balancing = true
  enable_zonal_shift               = true

  access_logs {
    bucket  = var.log_bucket
    prefix  = "alb"
    enabled = true
  }
}

resource "aws_lb_target_group" "this" {
  count = local.makes_balancer ? 1 : 0

  name                 = var.name
  target_type          = "ip"
  port                 = var.target_port
  protocol             = "HTTP"
  protocol_version     = "HTTP1"
  vpc_id               = var.vpc_id
  deregistration_delay = var.deregistration_delay_s
  # Streams last from milliseconds to minutes: the pod with the fewest open ones gets the next.
  load_balancing_algorithm_type = "least_outstanding_requests"

  health_check {
    port                = "traffic-port"
    path                = "/edge/healthz" # nginx's own answer: gateways that are away must not take the edge with them
    matcher             = "200"
    interval            = 5
    timeout             = 4
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
}

resource "aws_lb_listener" "https" {
  count = local.makes_balancer ? 1 : 0

  load_balancer_arn = aws_lb.this[0].arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = var.certificate_arn

  routing_http_response_strict_transport_security_header_value = "max-age=31536000"

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this[0].arn
  }
}
