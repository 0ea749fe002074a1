{{/* nginx before the gateways: deploy/edge/nginx, with a cluster's names filled in. */}}
{{- define "axon.nginx" -}}
{{- /* One address, which the cluster leads to any gateway that is ready. It stands there three times, so that a
connection that nobody took is tried again. */ -}}
{{- $server := printf "server %s-gateway:8000 max_fails=0;" (include "axon.name" .) -}}
{{- $text := .Files.Get "files/nginx/nginx.conf.template" -}}
{{- $text = replace "${AXON_EDGE_FOLDER}/error.log" "stderr" $text -}}
{{- $text = replace "${AXON_EDGE_FOLDER}" "/tmp" $text -}}
{{- $text = replace "${AXON_EDGE_PROCESSES}" (int .Values.edge.processes | toString) $text -}}
{{- $text = replace "${AXON_EDGE_DRAIN_S}" (int .Values.edge.drainSeconds | toString) $text -}}
{{- $text = replace "${AXON_EDGE_REQUESTS_PER_ADDRESS}" (int .Values.edge.requestsPerAddress | toString) $text -}}
{{- $text = replace "${AXON_EDGE_LISTEN}" (ternary "8080 ssl http2" "8080" (ne .Values.edge.tlsSecret "")) $text -}}
{{- $text = replace "${AXON_EDGE_GATEWAYS}" (list $server $server $server | join " ") $text -}}
{{- if contains "${AXON_EDGE_" $text }}{{ fail "files/nginx/nginx.conf.template has a name that the chart does not fill in" }}{{ end -}}
{{- $text -}}
{{- end -}}

{{/* The files of nginx's folder server/, by name. */}}
{{- define "axon.nginxServer" -}}
health.conf: |
  # For probes and balancers: whether nginx itself is there.
  location = /edge/healthz {
      default_type text/plain;
      return 200 "ok\n";
  }
{{- if .Values.edge.tlsSecret }}
tls.conf: |
  {{- .Files.Get "files/nginx/tls.conf" | replace "tls/tls." "/etc/axon-tls/tls." | nindent 2 }}
{{- end }}
{{- $trusted := .Values.edge.trustedProxies }}
{{- if and .Values.ingress.enabled (not $trusted) }}{{ $trusted = list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" }}{{ end }}
{{- if $trusted }}
balancer.conf: |
  # The client's address where a load balancer stands before nginx.
  {{- range $trusted }}
  set_real_ip_from {{ . }};
  {{- end }}
  real_ip_header X-Forwarded-For;
  # Without trustedProxies an Ingress is the one balancer before nginx: it adds the client's address last.
  real_ip_recursive {{ ternary "on" "off" (not (empty .Values.edge.trustedProxies)) }};
{{- end }}
{{- end -}}
