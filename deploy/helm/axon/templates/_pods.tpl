{{/* Parts of pods that every role has. */}}

{{- define "axon.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Pods over zones, then over nodes; call with (dict "root" $ "component" …). */}}
{{- define "axon.spread" -}}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- maxSkew: {{ $.root.Values.spread.maxSkew }}
  topologyKey: {{ $key }}
  whenUnsatisfiable: {{ ternary $.root.Values.spread.whenUnsatisfiable "ScheduleAnyway" (eq $key "topology.kubernetes.io/zone") }}
  labelSelector:
    matchLabels: {{- include "axon.selector" $ | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Refuses a grace that does not hold the stop; call with the role's values and its name. */}}
{{- define "axon.checkGrace" -}}
{{- $settings := mergeOverwrite (deepCopy .root.Values.settings) (deepCopy (default dict .values.settings)) -}}
{{- $notice := dig "lifecycle" "notice_s" 0 $settings | int -}}
{{- $needed := add (int .values.preStopSeconds) $notice (int .values.drainSeconds) 10 -}}
{{- if lt (int .values.terminationGracePeriodSeconds) (int $needed) -}}
{{- fail (printf "%s: terminationGracePeriodSeconds is %d, less than preStopSeconds + lifecycle.notice_s + drainSeconds + 10 = %d: pods would be killed while they drain" .name (int .values.terminationGracePeriodSeconds) (int $needed)) -}}
{{- end -}}
{{- end -}}

{{- define "axon.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "axon.preStop" -}}
{{- if gt (int .) 0 }}
lifecycle:
  preStop:
    sleep: {seconds: {{ int . }}}
{{- end }}
{{- end -}}

{{/* Probes of one of our processes. Liveness looks at the process alone, never at a service. */}}
{{- define "axon.probes" -}}
startupProbe:
  httpGet: {path: {{ .startup }}, port: metrics}
  periodSeconds: {{ .startupPeriod }}
  timeoutSeconds: 5
  failureThreshold: {{ .startupFailures }}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
  terminationGracePeriodSeconds: {{ add (int .preStop) 15 }} # a process that hangs drains nothing: others wait for its work
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 1
{{- end -}}

{{- define "axon.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "axon.name" .root }}-{{ .component }}
  labels: {{- include "axon.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "axon.selector" . | nindent 6 }}
{{- end -}}
