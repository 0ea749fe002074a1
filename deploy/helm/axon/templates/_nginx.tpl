{{/* nginx before the gateways: the rules of deploy/edge, for a cluster's addresses. */}}
{{- define "axon.nginx" -}}
{{- $gateway := printf "%s-gateway:8000" (include "axon.name" .) -}}
daemon off;
worker_processes auto;
worker_shutdown_timeout {{ .Values.edge.drainSeconds }}s;
pid /tmp/nginx.pid;
error_log /dev/stderr warn;

events {
    worker_connections 8192;
}

http {
    access_log off;
    server_tokens off;
    client_body_temp_path /tmp/body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;

    client_header_timeout 10s;
    client_body_timeout 30s;
    # More than a gateway takes (gateway.max_body_bytes), whose own 413 says more than nginx's.
    client_max_body_size 16m;
    keepalive_timeout 75s;

    # Without trustedProxies an Ingress is the one balancer before this: it adds the client's address last.
    {{- $trusted := .Values.edge.trustedProxies }}
    {{- if and .Values.ingress.enabled (not $trusted) }}{{ $trusted = list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" }}{{ end }}
    {{- range $trusted }}
    set_real_ip_from {{ . }};
    {{- end }}
    {{- if $trusted }}
    real_ip_header X-Forwarded-For;
    real_ip_recursive {{ ternary "on" "off" (not (empty .Values.edge.trustedProxies)) }};
    {{- end }}
    limit_conn_zone $binary_remote_addr zone=clients:10m;
    limit_conn_status 429;

    upstream gateways {
        # One address, which the cluster leads to any gateway that is ready. It stands here three times, so that a
        # connection that nobody took is tried again; max_fails=0: a refused one costs nothing.
        server {{ $gateway }} max_fails=0;
        server {{ $gateway }} max_fails=0;
        server {{ $gateway }} max_fails=0;
    }

    # A WebSocket's connection is handed over to its gateway; of any other, a gateway answers one request.
    map $http_upgrade $connection_to_gateway {
        default upgrade;
        "" close;
    }

    server {
        listen 8081;
        location = /healthz {
            return 200 "ok\n";
        }
        location / {
            return 404;
        }
    }

    server {
        {{- if .Values.edge.tlsSecret }}
        listen 8080 ssl http2;
        ssl_certificate /etc/axon-tls/tls.crt;
        ssl_certificate_key /etc/axon-tls/tls.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:tls:10m;
        {{- else }}
        listen 8080;
        {{- end }}
        limit_conn clients {{ .Values.edge.connectionsPerAddress }};

        proxy_http_version 1.1;
        # One connection a request: a gateway that leaves has none idle for a request to get lost on.
        proxy_set_header Connection $connection_to_gateway;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;

        # Streams: every frame goes out as it comes. A silent stream says so every 15 s (gateway.silence_s).
        proxy_buffering off;
        proxy_cache off;
        proxy_read_timeout {{ .Values.ingress.idleTimeoutSeconds }}s;
        proxy_send_timeout 60s;

        # The next one only where nothing was sent: a POST that a gateway has begun to read may have been accepted.
        proxy_connect_timeout 1s;
        proxy_next_upstream error timeout;
        proxy_next_upstream_tries 3;
        proxy_next_upstream_timeout 10s;

        location / {
            proxy_pass http://gateways;
        }

        # Uploads are as large as batches.max_file_bytes and go through as they come: the gateway has deadlines for them.
        location = /v1/files {
            client_max_body_size 256m;
            proxy_request_buffering off;
            proxy_pass http://gateways;
        }

        # nginx's own errors in the API's shape: no gateway took the request, or one died over it.
        error_page 502 504 = @away;
        location @away {
            internal;
            default_type application/json;
            add_header retry-after-ms 1000 always;
            add_header retry-after 1 always;
            add_header x-should-retry true always;
            return 503 '{"error":{"message":"No gateway answered; try again soon.","type":"server_error","param":null,"code":"gateway_unavailable"}}';
        }
    }
}
{{- end -}}
